# Names and addresses that the modules iscsi_target_iet and iscsi_initiator share.

# iscsi_iqn DEVICE: prints the IQN of a device that iscsi_target_iet exports: iqn_base and the device, with dots for slashes.
# Names of iSCSI have lower case letters, digits and the characters . : - only (RFC 3722); today's programs refuse others,
# also the _ of 2012.
iscsi_iqn() {
    local name=${1//\//.}
    name=${name//[!A-Za-z0-9.:-]/-}
    local iqn="${iqn_base-}${name,,}"
    if [[ ! $iqn =~ ^(iqn|eui|naa)\.[a-z0-9.:-]+$ || ${#iqn} -gt 223 ]]; then
        campaign_error "$iqn is not an iSCSI name: iqn_base begins with iqn. and has a-z, 0-9 and .:- only, 223 in all"
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
