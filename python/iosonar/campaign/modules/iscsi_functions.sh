# Names and addresses that the modules iscsi_target_iet and iscsi_initiator share.

# iscsi_iqn DEVICE: prints the IQN of a device that iscsi_target_iet exports.
iscsi_iqn() {
    local iqn="${iqn_base-}${1//\//_}"
    if [[ ! $iqn =~ ^(iqn|eui|naa)\.[A-Za-z0-9._:+=@-]+$ ]]; then
        campaign_error "$iqn is not an iSCSI name: iqn_base begins with iqn., device names have letters, digits and ._:+=@-"
        return 1
    fi
    printf '%s\n' "$iqn"
}

# iscsi_address HOST NAME: prints the address and port of NAME, as in `iscsiadm --portal`, resolved on HOST. NAME may have a
# port and may be an address of IPv6, in brackets if it has a port.
iscsi_address() {
    local host=$1 name=$2 port=3260 address
    if [[ $name =~ ^\[(.+)\](:([0-9]+))?$ ]]; then
        name=${BASH_REMATCH[1]} port=${BASH_REMATCH[3]:-3260}
    elif [[ $name =~ ^([^:]+):([0-9]+)$ ]]; then
        name=${BASH_REMATCH[1]} port=${BASH_REMATCH[2]}
    fi
    if [[ ! $name =~ ^[A-Za-z0-9.:_%-]+$ || $name == -* ]]; then
        campaign_error "iscsi_ip=\"$2\" is not an address: write NAME, ADDRESS or ADDRESS:PORT"
        return 1
    fi
    address=$(on_host "$host" "$name" <<<'getent ahosts "$1" | sed -n "1s/ .*//p"')
    if [[ -z $address ]]; then
        campaign_error "$host cannot resolve $name, the address of the iSCSI target: correct iscsi_ip or iscsi_target"
        return 1
    fi
    if [[ $address == *:* ]]; then
        printf '[%s]:%s\n' "$address" "$port"
    else
        printf '%s:%s\n' "$address" "$port"
    fi
}
