#!/bin/bash
# Makes the certificates of this folder anew, by OpenSSL 3.0 or later: see README.md.
set -euo pipefail
cd "$(dirname "$0")"
rm -f ./*.pem ./end_points
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
days=36500

ec() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:"${2:-P-256}" -out "$1" 2>/dev/null; }
rsa() { openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$1" 2>/dev/null; }

# A root certificate NAME.pem of version 3 with these extensions and the subject NAME or another; its key is kept.
root() {
    local name=$1 extensions=$2 subject=${3:-$1}
    ec "$work/$name.key"
    openssl req -new -x509 -sha256 -days $days -key "$work/$name.key" -subj "/CN=$subject" \
        -config <(printf '[req]\ndistinguished_name=dn\nx509_extensions=e\n[dn]\n[e]\n%b\n' "$extensions") -out "$name.pem"
}

# A certificate NAME.pem of the key KEY, signed by ISSUER, with these extensions; without any: of version 1.
signed() {
    local name=$1 key=$2 issuer=$3 subject=$4 extensions=${5:-}
    shift 5 || shift $#
    openssl req -new -key "$key" -subj "$subject" -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -out "$work/csr"
    local extfile=()
    if [ -n "$extensions" ]; then
        printf '%b\n' "$extensions" >"$work/extensions"
        extfile=(-extfile "$work/extensions")
    fi
    openssl x509 -req -in "$work/csr" -days $days -CA "$issuer.pem" -CAkey "$work/$issuer.key" -CAcreateserial \
        -CAserial "$work/serial" "${extfile[@]}" "${@:--sha256}" -out "$name.pem" 2>/dev/null
}

# A certificate of the root that was valid between two dates only.
dated() {
    openssl req -new -key server.key.pem -subj /CN=db.example -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -out "$work/csr"
    : >"$work/index"
    printf '%s\n' '[ca]' default_ca=c '[c]' "serial=$work/none" "database=$work/index" "new_certs_dir=$work" default_md=sha256 \
        policy=p x509_extensions=e '[p]' commonName=supplied '[e]' subjectAltName=DNS:db.example >"$work/ca"
    openssl ca -batch -notext -config "$work/ca" -in "$work/csr" -cert root.pem -keyfile "$work/root.key" \
        -startdate "$2" -enddate "$3" -rand_serial -out "$1.pem" 2>/dev/null
}

ec server.key.pem
ec client.key.pem
rsa rsa.key.pem
ec p384.key.pem P-384
openssl genpkey -algorithm ED25519 -out ed25519.key.pem

ca='basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash'
root root "$ca"
root other_root "$ca"
root impostor "$ca" root
root constrained_root "$ca\nnameConstraints=critical,permitted;DNS:db.example"
root short_root 'basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign'
root no_signing_root 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,cRLSign'

# Of version 1: as "Creating Certificates" in PostgreSQL's manual makes them, without extensions.
ec "$work/root_v1.key"
openssl req -new -key "$work/root_v1.key" -subj /CN=root_v1 -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -out "$work/csr"
openssl x509 -req -in "$work/csr" -days $days -signkey "$work/root_v1.key" -out root_v1.pem 2>/dev/null
signed v1 server.key.pem root /CN=db.example
signed v1_of_v1 server.key.pem root_v1 /CN=db.example
openssl req -new -key server.key.pem -subj /CN=db.example -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -out "$work/csr"
openssl x509 -req -in "$work/csr" -days $days -signkey server.key.pem -out self_signed_v1.pem 2>/dev/null
openssl req -new -x509 -sha256 -days $days -key server.key.pem -subj /CN=db.example -out self_signed.pem \
    -config <(printf '[req]\ndistinguished_name=dn\nx509_extensions=e\n[dn]\n[e]\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\nbasicConstraints=critical,CA:TRUE\n')

leaf='basicConstraints=CA:FALSE'
signed good server.key.pem root /CN=db.example "$leaf\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName=DNS:db.example"
signed cn_only server.key.pem root /CN=db.example "$leaf"
signed wildcard server.key.pem root /CN=ignored.example "$leaf\nsubjectAltName=DNS:*.db.example,DNS:other.example"
signed address server.key.pem root /CN=db.example "$leaf\nsubjectAltName=IP:192.0.2.1,IP:2001:db8::1"
signed address_as_name server.key.pem root /CN=192.0.2.2 "$leaf\nsubjectAltName=DNS:192.0.2.1"
signed client_only server.key.pem root /CN=db.example "$leaf\nextendedKeyUsage=clientAuth\nsubjectAltName=DNS:db.example"
signed no_signature server.key.pem root /CN=db.example "$leaf\nkeyUsage=cRLSign"
signed critical server.key.pem root /CN=db.example "$leaf\n1.2.3.4=critical,ASN1:NULL"
signed constrained server.key.pem constrained_root /CN=db.example "$leaf\nsubjectAltName=DNS:db.example"
signed beyond_constraint server.key.pem constrained_root /CN=db.example "$leaf\nsubjectAltName=DNS:db.example,DNS:other.example"
signed of_no_signing server.key.pem no_signing_root /CN=db.example "$leaf"
dated expired 20000101000000Z 20010101000000Z
dated future 20990101000000Z 21000101000000Z
signed client client.key.pem root /CN=alice "$leaf\nextendedKeyUsage=clientAuth"
signed client_v1 client.key.pem root /CN=alice
signed unknown server.key.pem other_root /CN=db.example "$leaf\nsubjectAltName=DNS:db.example"

# Certificates of others in between: a good one, one that is not allowed to sign, and one too many.
chain() {
    local name=$1 root=$2 extensions=$3
    ec "$work/$name.key"
    signed "$name" "$work/$name.key" "$root" "/CN=$name" "$extensions"
    signed "of_$name" server.key.pem "$name" /CN=db.example "$leaf\nsubjectAltName=DNS:db.example"
    cat "$name.pem" >>"of_$name.pem"
}
chain intermediate root "$ca"
chain no_ca root "$leaf"
chain beyond short_root "$ca"

# Signature algorithms, for the hash of channel binding.
signed sha384 p384.key.pem root /CN=db.example "$leaf" -sha384
signed ecdsa_sha512 server.key.pem root /CN=db.example "$leaf" -sha512
signed sha1 server.key.pem root /CN=db.example "$leaf" -sha1
self() {
    local name=$1 key=$2
    shift 2
    openssl req -new -x509 -days $days -key "$key" -subj /CN=db.example "$@" -out "$name.pem" -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n')
}
self rsa rsa.key.pem -sha256
self sha512 rsa.key.pem -sha512
self pss_sha256 rsa.key.pem -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
self pss_sha512 rsa.key.pem -sha512 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:max
self pss_sha1 rsa.key.pem -sha1 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
self ed25519 ed25519.key.pem
for pair in good:256 v1:256 sha1:256 sha384:384 sha512:512 ecdsa_sha512:512 rsa:256 pss_sha256:256 pss_sha512:512 pss_sha1:256; do
    name=${pair%:*}
    printf '%s %s\n' "$name" "$(openssl x509 -in "$name.pem" -outform DER | openssl dgst "-sha${pair#*:}" -r | cut -d' ' -f1)" >>end_points
done
