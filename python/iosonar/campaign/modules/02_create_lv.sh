# Deletes and creates the volumes of a storage system by the user's functions delete_lv and create_lv.

source "${base_dir}/modules/functions.sh"

# Prints a script that calls delete_lv in a shell of its own: the functions and variables of this one, with a `remote`
# that needs no controller.
create_lv_undo() {
    declare -f | grep -v '^declare -f'
    # Read-only variables and those of the shell itself cannot be set again.
    declare -p | grep -E '^declare -[-aA]+ ' |
        grep -v -E '^declare -[-aA]+ (BASH|DIRSTACK|FUNCNAME|GROUPS|PIPESTATUS|campaign_|prepare_list|setup_list|run_list|cleanup_list|finish_list|_=)'
    cat <<'SCRIPT'
remote() {
    local host=$1 user=()
    shift
    if [[ $host == localhost ]]; then
        bash -c "$*"
        return
    fi
    if [[ $host != *@* && $(ssh -G -- "$host" | sed -n 's/^user //p') == "$(id -un)" ]]; then
        user=(-l root)
    fi
    ssh -o BatchMode=yes "${user[@]}" -- "$host" "$*"
}
campaign_error() { printf '%s\n' "$*" >&2; }
campaign_warn() { campaign_error "$*"; }
campaign_note() { campaign_error "$*"; }
delete_lv
SCRIPT
}

create_lv_delete() {
    local saved_hosts=$replay_host_list
    # delete_lv of the manual's conf empties the list of hosts.
    if ! delete_lv; then
        campaign_error "delete_lv failed: volumes may be left over; delete them by hand"
        return 1
    fi
    replay_host_list=$saved_hosts
}

create_lv_prepare() {
    ((enable_create_lv)) || return 0
    local function
    for function in delete_lv create_lv; do
        if [[ $(type -t "$function") != function ]]; then
            campaign_error "create_lv: the function $function is missing: define it in a conf"
            return 1
        fi
    done
    campaign_create_lv_undo_id=""
    undo_add localhost "delete the volumes of create_lv (function delete_lv)" "$(create_lv_undo)" || return 1
    campaign_create_lv_undo_id=$undo_id
    create_lv_delete || return 1
    replay_host_list=""
    if ! create_lv; then
        campaign_error "create_lv failed: see its output above"
        return 1
    fi
    if [[ -z ${replay_host_list//[[:space:]]/} ]]; then
        campaign_error "create_lv did not set replay_host_list: set it to \"host:device ...\""
        return 1
    fi
    devices_prepare
}

create_lv_finish() {
    ((enable_create_lv)) || return 0
    [[ -n ${campaign_create_lv_undo_id-} ]] || return 0
    create_lv_delete || return 1
    undo_done "$campaign_create_lv_undo_id"
    campaign_create_lv_undo_id=""
}

prepare_list+=" create_lv_prepare"
finish_list="create_lv_finish $finish_list"
