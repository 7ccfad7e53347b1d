# Viewers of films: each reads at its film's rate and jumps now and then. Needs nginx-light and curl.
filesystem=xfs
size=4G
calls=yes

note() {
    echo "nginx $(nginx -v 2>&1 | grep -o '[0-9.]*' | head -n 1): 12 viewers of 10 films of 120 MB at 500 kB/s each, a jump each 40 s, $seconds s"
}

prepare() {
    mkdir "$mounted/films" "$top/logs"
    for film in $(seq 0 9); do head -c 120M /dev/urandom >"$mounted/films/$film.mp4"; done
    cat >"$top/nginx.conf" <<CONF
pid $top/nginx.pid;
error_log /dev/null;
worker_processes 2;
events {}
http {
    access_log off;
    client_body_temp_path $top/logs;
    server {
        listen unix:$top/web;
        root $mounted/films;
        # No page of a film is read twice by chance.
        aio threads;
        directio 4k;
        output_buffers 2 128k;
    }
}
CONF
    chmod -R a+rX "$mounted" "$top"
}

run() {
    nginx -c "$top/nginx.conf" -g 'daemon off;' &
    server=$!
    until [ -S "$top/web" ]; do sleep 0.1; done
    viewers=()
    for viewer in $(seq 12); do
        (
            RANDOM=$viewer
            while [ $SECONDS -lt "$seconds" ]; do
                from=$((RANDOM * 3000))
                curl --silent --unix-socket "$top/web" --limit-rate 500k --max-time $((10 + RANDOM % 60)) \
                    --range "$from-" "http://localhost/$((RANDOM % 10)).mp4" --output /dev/null || true
            done
        ) &
        viewers+=($!)
    done
    wait "${viewers[@]}"
    kill "$server"
    wait
}
