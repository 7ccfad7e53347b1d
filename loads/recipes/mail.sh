# A mail spool: deliveries at random times; mailboxes are read, sorted and emptied. Needs dovecot-core.
filesystem=ext4
size=1G
calls=yes

note() {
    echo "Dovecot $(dovecot --version | cut -d ' ' -f 1): 40 mailboxes (Maildir), a delivery each 5 s on average; each 12 s a reader lists, searches, moves or expunges, $seconds s"
}

# A command of Dovecot for that user's mailbox.
mail_of() {
    local user=$1 name=$2
    shift 2
    runuser -u mail -- env USER="$user" HOME="$mounted/$user" "$name" -c "$top/dovecot.conf" "$@"
}

# Waits without a process of its own.
pause() {
    read -rt "$1" <> <(:) || true
}

prepare() {
    cat >"$top/dovecot.conf" <<CONF
log_path = /dev/null
first_valid_uid = 1
base_dir = $top/run
mail_location = maildir:%h
mail_fsync = always
CONF
    chown mail "$mounted" "$top"
    awk 'BEGIN {
        srand(1)
        for (mail = 0; mail < 50; mail++) {
            file = sprintf("%s/mail%d", ENVIRON["top"], mail)
            printf "From: a@example.org\nTo: b@example.org\nSubject: report %d\n\n", mail > file
            lines = 20 + int(1500 * rand() * rand() * rand())
            for (i = 0; i < lines; i++) printf "%.12f %.12f %.12f %.12f\n", rand(), rand(), rand(), rand() > file
            close(file)
        }
    }'
    for user in $(seq 40); do
        install -d -o mail "$mounted/user$user"
        for mail in $(seq 25); do
            mail_of "user$user" /usr/lib/dovecot/dovecot-lda <"$top/mail$mail"
        done
    done
}

run() {
    (
        RANDOM=1
        while [ $SECONDS -lt "$seconds" ]; do
            mail_of "user$((RANDOM % 40 + 1))" /usr/lib/dovecot/dovecot-lda <"$top/mail$((RANDOM % 50))"
            pause "$((RANDOM % 10)).$((RANDOM % 10))"
        done
    ) &
    RANDOM=2
    while [ $SECONDS -lt "$seconds" ]; do
        user=user$((RANDOM % 40 + 1))
        mail_of "$user" doveadm fetch 'flags hdr.subject' mailbox INBOX UNSEEN >/dev/null
        case $((RANDOM % 4)) in
            0) mail_of "$user" doveadm fetch text mailbox INBOX UNSEEN >/dev/null ;;
            1) mail_of "$user" doveadm search mailbox INBOX BODY 0.123 >/dev/null ;;
            2) mail_of "$user" doveadm move INBOX.old mailbox INBOX 1:5 2>/dev/null || mail_of "$user" doveadm mailbox create INBOX.old ;;
            3) mail_of "$user" doveadm expunge mailbox INBOX 1:2 ;;
        esac
        pause 12
    done
    wait
}
