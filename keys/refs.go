package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"encoding/base64"
	"strings"
)

// Refs seals the references of payments for the gate, which compares them and
// needs to know no more. The same reference always makes the same text, so
// equality is the gate's own; whoever has the key reads it back.
//
// The keys come from the person secret, which is never changed: a reference must
// be known again for as long as its sale is. They are none of the keys that
// encrypt payloads, which may be changed at any time.
type Refs struct {
	mac   []byte
	block cipher.Block
}

// NewRefs derives the keys from the person secret.
func NewRefs(person []byte) *Refs {
	block, err := aes.NewCipher(mac(person, "payment-ref", "encrypt"))
	if err != nil {
		panic(err) // only for a key of another length than 32 bytes
	}
	return &Refs{mac: mac(person, "payment-ref", "authenticate"), block: block}
}

// sealedRef begins every sealed reference.
const sealedRef = "s1."

// Seal is the sealed form of a reference, "" for none. The initial vector is the
// MAC of the text (the SIV construction), so that it needs no nonce to be kept.
func (r *Refs) Seal(ref string) string {
	if ref == "" {
		return ""
	}
	iv := mac(r.mac, ref)[:aes.BlockSize]
	sealed := append(iv, ref...)
	cipher.NewCTR(r.block, iv).XORKeyStream(sealed[aes.BlockSize:], []byte(ref))
	return sealedRef + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open is the inverse of Seal. A text that it did not make, such as one under
// another person secret, is answered as it stands.
func (r *Refs) Open(stored string) string {
	text, ours := strings.CutPrefix(stored, sealedRef)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if !ours || err != nil || len(sealed) <= aes.BlockSize {
		return stored
	}
	ref := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCTR(r.block, sealed[:aes.BlockSize]).XORKeyStream(ref, sealed[aes.BlockSize:])
	if !hmac.Equal(mac(r.mac, string(ref))[:aes.BlockSize], sealed[:aes.BlockSize]) {
		return stored
	}
	return string(ref)
}
