// Package keys holds the secrets of a Holdfast and everything that is made
// with them: person hashes, hold ids of callers, sealed entry inputs, reserve
// tokens and the signature of a checkout link.
package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/contract"
)

// MinSecret is the least number of bytes of a secret.
const MinSecret = 16

// LinkKey signs reserve tokens. ID is 0 to 255 and travels in the token.
type LinkKey struct {
	ID     byte
	Secret []byte
}

// Ring is the set of secrets. Person is set once and never changed: with it
// every person of the gate would change. The first link key signs, all verify.
type Ring struct {
	person, hold, checkout, print []byte
	seal                          cipher.AEAD
	links                         []LinkKey
}

// New derives a ring from its secrets: person and main of at least MinSecret
// bytes, and at least one link key.
func New(person, main []byte, links []LinkKey) (*Ring, error) {
	if len(person) < MinSecret || len(main) < MinSecret {
		return nil, fmt.Errorf("a secret needs at least %d bytes", MinSecret)
	}
	if len(links) == 0 {
		return nil, errors.New("at least one link key is needed")
	}
	for _, l := range links {
		if len(l.Secret) < MinSecret {
			return nil, fmt.Errorf("link key %d needs at least %d bytes", l.ID, MinSecret)
		}
	}
	block, err := aes.NewCipher(mac(main, "seal"))
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Ring{person: person, hold: mac(main, "hold"), checkout: mac(main, "checkout"), print: mac(main, "fingerprint"), seal: seal, links: links}, nil
}

// mac is HMAC-SHA256 over the parts, each framed by its length so that no
// character can move from one part to the next.
func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return h.Sum(nil)
}

// PersonOfPhone is the person of an E.164 number: 22 characters.
func (r *Ring) PersonOfPhone(e164 string) string { return r.personOf("phone", e164) }

// PersonOfCustomer is the person of a shop's customer reference, for buyers
// whose number is not known.
func (r *Ring) PersonOfCustomer(customer string) string { return r.personOf("customer", customer) }

func (r *Ring) personOf(kind, value string) string {
	return base64.RawURLEncoding.EncodeToString(mac(r.person, kind, value)[:16])
}

// HoldID is the id of the hold that caller asks for under an Idempotency-Key:
// the same call always names the same hold.
func (r *Ring) HoldID(sku, caller, idempotencyKey string) string {
	return contract.HoldID(sku, mac(r.hold, caller, idempotencyKey))
}

// NewEntryID draws a fresh entry id.
func (r *Ring) NewEntryID(sku string) string {
	var tail [contract.IDTailBytes]byte
	rand.Read(tail[:]) // never fails since Go 1.24
	return contract.EntryID(sku, tail[:])
}

// Seal encrypts an entry's input for the outbox, bound to its entry id.
func (r *Ring) Seal(in contract.EntryInput) ([]byte, error) {
	plain, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, r.seal.NonceSize(), r.seal.NonceSize()+len(plain)+r.seal.Overhead())
	rand.Read(nonce)
	return r.seal.Seal(nonce, nonce, plain, []byte(in.EntryID)), nil
}

// Unseal is the inverse of Seal.
func (r *Ring) Unseal(entryID string, sealed []byte) (contract.EntryInput, error) {
	var in contract.EntryInput
	if len(sealed) < r.seal.NonceSize() {
		return in, fmt.Errorf("sealed input of %s is only %d bytes long", entryID, len(sealed))
	}
	plain, err := r.seal.Open(nil, sealed[:r.seal.NonceSize()], sealed[r.seal.NonceSize():], []byte(entryID))
	if err != nil {
		return in, fmt.Errorf("sealed input of %s does not open with the main secret: %w", entryID, err)
	}
	return in, json.Unmarshal(plain, &in)
}

// CheckoutSig signs the hold id, the entry id and the expiry of a checkout
// link, so that a shop can trust the cart without a call: base64url of
// HMAC-SHA256 cut to 128 bits. expiresAt is the text that stands in the link.
func (r *Ring) CheckoutSig(holdID, entryID, expiresAt string) string {
	return base64.RawURLEncoding.EncodeToString(mac(r.checkout, holdID, entryID, expiresAt)[:16])
}

// Fingerprint is what a store may keep of a text to know it again: 22
// characters. Without the key nobody can try out what the text was, however few
// there are to try.
func (r *Ring) Fingerprint(text string) string {
	return base64.RawURLEncoding.EncodeToString(mac(r.print, text)[:16])
}

// OrderPrint is what a store keeps of an order of the shop's.
func (r *Ring) OrderPrint(orderRef string) string { return r.Fingerprint("order:" + orderRef) }

// CustomerPrint is what a store keeps of a customer of the shop's.
func (r *Ring) CustomerPrint(customer string) string { return r.Fingerprint("customer:" + customer) }

// PaymentPrint is what a store keeps of a payment that was told for a hold.
func (r *Ring) PaymentPrint(ref string) string { return r.Fingerprint("payment:" + ref) }

// NamesOf are the prints of the names by which the shop will ask for a hold: its order,
// and its customer where the person on its record is not made of that name but of a
// phone number. The customer of a link is an entry, which leads to its holds itself.
func (r *Ring) NamesOf(s contract.HoldStatus) []string {
	var prints []string
	if s.OrderRef != "" {
		prints = append(prints, r.OrderPrint(s.OrderRef))
	}
	if s.EntryID == "" && s.Customer != "" && s.Person != r.PersonOfCustomer(s.Customer) {
		prints = append(prints, r.CustomerPrint(s.Customer))
	}
	return prints
}

const (
	tokenVersion = 1
	tokenMAC     = 16
	tokenLen     = 1 + 1 + 16 + 6 + tokenMAC
)

// Errors of ParseToken. Both lead to the same page: who guesses learns nothing.
var (
	ErrBadToken     = errors.New("not a reserve token of ours")
	ErrTokenExpired = errors.New("reserve token past its hard expiry")
)

// Token is the reserve token of an offer: version, key id, hold id, hard
// expiry in milliseconds and HMAC-SHA256 cut to 128 bits, 40 bytes, as 54
// characters of base64url.
func (r *Ring) Token(holdID string, expires time.Time) (string, error) {
	id, err := contract.HoldIDBytes(holdID)
	if err != nil {
		return "", err
	}
	ms := expires.UnixMilli()
	if ms < 0 || ms >= 1<<48 { // a zero time would otherwise wrap to one far ahead
		return "", fmt.Errorf("reserve token of %s: expiry %s does not fit", holdID, expires)
	}
	raw := make([]byte, 0, tokenLen)
	raw = append(raw, tokenVersion, r.links[0].ID)
	raw = append(raw, id[:]...)
	for shift := 40; shift >= 0; shift -= 8 {
		raw = append(raw, byte(ms>>shift))
	}
	raw = append(raw, tokenTag(r.links[0].Secret, raw)...)
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

func tokenTag(secret, body []byte) []byte {
	return mac(secret, "reserve-token", string(body))[:tokenMAC]
}

// ParseToken returns the hold id of a token whose signature is right. Past its
// expiry the id comes with ErrTokenExpired.
func (r *Ring) ParseToken(token string, now time.Time) (holdID string, err error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenLen) {
		return "", ErrBadToken
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || raw[0] != tokenVersion {
		return "", ErrBadToken
	}
	body, tag := raw[:tokenLen-tokenMAC], raw[tokenLen-tokenMAC:]
	for _, l := range r.links {
		if l.ID != body[1] || !hmac.Equal(tag, tokenTag(l.Secret, body)) {
			continue
		}
		holdID = contract.HoldIDFromBytes([16]byte(body[2:18]))
		var ms uint64
		for _, b := range body[18:24] {
			ms = ms<<8 | uint64(b)
		}
		if now.UnixMilli() >= int64(ms) {
			return holdID, ErrTokenExpired
		}
		return holdID, nil
	}
	return "", ErrBadToken
}
