# The replay itself. Its work is done by the controller, which asks this shell for the variables.

main_prepare() {
    devices_prepare
}

main_setup() {
    campaign_request main_setup
}

main_run() {
    campaign_request main_run
}

main_cleanup() {
    campaign_request main_cleanup
}

main_finish() {
    campaign_request main_finish
}

prepare_list+=" main_prepare"
setup_list+=" main_setup"
run_list+=" main_run"
cleanup_list+=" main_cleanup"
finish_list+=" main_finish"
