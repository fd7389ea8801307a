package keys

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/contract"
)

var (
	personSecret = []byte("person-secret-of-test")
	mainSecret   = []byte("main-secret-of-the-test")
	oldLink      = LinkKey{ID: 1, Secret: []byte("old-link-secret-of-test")}
	newLink      = LinkKey{ID: 255, Secret: []byte("new-link-secret-of-test")}
	now          = time.UnixMilli(1_700_000_000_000)
)

func ring(t *testing.T, links ...LinkKey) *Ring {
	t.Helper()
	if len(links) == 0 {
		links = []LinkKey{oldLink}
	}
	r, err := New(personSecret, mainSecret, links)
	require.NoError(t, err)
	return r
}

func holdID(tail byte) string {
	return contract.HoldID("CHAIR", []byte{tail, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
}

func token(t *testing.T, r *Ring, id string, expires time.Time) string {
	t.Helper()
	s, err := r.Token(id, expires)
	require.NoError(t, err)
	return s
}

func TestNewRefusesWeakSecrets(t *testing.T) {
	short := make([]byte, MinSecret-1)
	for name, err := range map[string]error{
		"person": second(New(short, mainSecret, []LinkKey{oldLink})),
		"main":   second(New(personSecret, short, []LinkKey{oldLink})),
		"none":   second(New(personSecret, mainSecret, nil)),
		"link":   second(New(personSecret, mainSecret, []LinkKey{oldLink, {ID: 9, Secret: short}})),
	} {
		require.Error(t, err, name)
	}
}

func second(_ *Ring, err error) error { return err }

func TestTokenRoundTrip(t *testing.T) {
	r := ring(t)
	rapid.Check(t, func(t *rapid.T) {
		id := contract.HoldID("CHAIR", rapid.SliceOfN(rapid.Byte(), contract.IDTailBytes, contract.IDTailBytes).Draw(t, "tail"))
		expires := time.UnixMilli(rapid.Int64Range(1, 1<<48-1).Draw(t, "expires"))
		s, err := r.Token(id, expires)
		require.NoError(t, err)
		require.Len(t, s, 54)
		require.Equal(t, "", strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), "no character that a link must escape")
		got, err := r.ParseToken(s, expires.Add(-time.Millisecond))
		require.NoError(t, err)
		require.Equal(t, id, got)
		got, err = r.ParseToken(s, expires)
		require.ErrorIs(t, err, ErrTokenExpired)
		require.Equal(t, id, got, "the page of a late link can still name what became of it")
	})
}

func TestTokenNeedsAHoldAndATime(t *testing.T) {
	r := ring(t)
	for _, id := range []string{"", "hold_", contract.EntryID("CHAIR", make([]byte, 11))} {
		_, err := r.Token(id, now)
		require.ErrorIs(t, err, contract.ErrBadID)
	}
	for _, expires := range []time.Time{{}, time.UnixMilli(-1), time.UnixMilli(1 << 48)} {
		_, err := r.Token(holdID(1), expires)
		require.Error(t, err, "a time that does not fit would wrap to another")
	}
}

func TestEachFlippedBitIsRefused(t *testing.T) {
	r := ring(t, oldLink, newLink)
	raw, err := base64.RawURLEncoding.DecodeString(token(t, r, holdID(1), now.Add(time.Hour)))
	require.NoError(t, err)
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		id, err := r.ParseToken(base64.RawURLEncoding.EncodeToString(raw), now)
		require.ErrorIs(t, err, ErrBadToken, "bit %d", bit)
		require.Empty(t, id)
		raw[bit/8] ^= 1 << (bit % 8)
	}
	_, err = r.ParseToken(base64.RawURLEncoding.EncodeToString(raw), now)
	require.NoError(t, err)
}

// A token has one spelling: the spare bits of its last letter are not free.
func TestEachChangedLetterIsRefused(t *testing.T) {
	r := ring(t)
	good := token(t, r, holdID(1), now.Add(time.Hour))
	for i := range good {
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=\n \x00" {
			if changed := good[:i] + string(c) + good[i+1:]; changed != good {
				_, err := r.ParseToken(changed, now)
				require.ErrorIs(t, err, ErrBadToken, "%q", changed)
			}
		}
	}
}

// A right signature is not enough: the version and the key's number must be
// those that it was made under.
func TestSignedForAnotherVersionOrKey(t *testing.T) {
	r := ring(t, oldLink, newLink)
	raw, err := base64.RawURLEncoding.DecodeString(token(t, r, holdID(1), now.Add(time.Hour)))
	require.NoError(t, err)
	for name, head := range map[string][2]byte{"version": {2, oldLink.ID}, "key": {1, newLink.ID}, "none": {1, oldLink.ID}} {
		body := append([]byte{head[0], head[1]}, raw[2:24]...)
		signed := append(body, tokenTag(oldLink.Secret, body)...)
		_, err = r.ParseToken(base64.RawURLEncoding.EncodeToString(signed), now)
		if name == "none" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrBadToken, name)
	}
}

// Parts of one right token in another make no right token (B71).
func TestSwappedFieldsAreRefused(t *testing.T) {
	r := ring(t)
	decode := func(s string) []byte {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		require.NoError(t, err)
		return raw
	}
	a := decode(token(t, r, holdID(1), now.Add(time.Minute)))
	b := decode(token(t, r, holdID(2), now.Add(time.Hour)))
	for name, part := range map[string][2]int{"hold id": {2, 18}, "expiry": {18, 24}, "tag": {24, 40}} {
		mixed := append([]byte(nil), a...)
		copy(mixed[part[0]:part[1]], b[part[0]:part[1]])
		_, err := r.ParseToken(base64.RawURLEncoding.EncodeToString(mixed), now)
		require.ErrorIs(t, err, ErrBadToken, name)
	}
}

// B71: no character can move from one signed part to the next.
func TestPartsAreFramed(t *testing.T) {
	r := ring(t)
	require.NotEqual(t, r.CheckoutSig("h", "123456", "1700000000"), r.CheckoutSig("h", "12345", "61700000000"))
	require.NotEqual(t, r.CheckoutSig("h", "", "e"), r.CheckoutSig("", "h", "e"))
	require.NotEqual(t, r.HoldID("CHAIR", "shop1", "23"), r.HoldID("CHAIR", "shop", "123"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789:ab")), 2, 30, -1).Draw(t, "text")
		i := rapid.IntRange(0, len(text)).Draw(t, "i")
		j := rapid.IntRange(0, len(text)).Draw(t, "j")
		same := string(mac(mainSecret, text[:i], text[i:])) == string(mac(mainSecret, text[:j], text[j:]))
		require.Equal(t, i == j, same)
	})
	require.NotEqual(t, mac(mainSecret, "a"), mac(mainSecret, "a", ""))
}

func TestRotation(t *testing.T) {
	before, during, after := ring(t, oldLink), ring(t, newLink, oldLink), ring(t, newLink)
	old := token(t, before, holdID(1), now.Add(time.Hour))
	fresh := token(t, during, holdID(1), now.Add(time.Hour))

	_, err := during.ParseToken(old, now)
	require.NoError(t, err, "old links live on while their key is listed")
	_, err = after.ParseToken(old, now)
	require.ErrorIs(t, err, ErrBadToken)
	_, err = after.ParseToken(fresh, now)
	require.NoError(t, err, "the first key signs")
	_, err = before.ParseToken(fresh, now)
	require.ErrorIs(t, err, ErrBadToken)

	forged := ring(t, LinkKey{ID: oldLink.ID, Secret: newLink.Secret})
	_, err = forged.ParseToken(old, now)
	require.ErrorIs(t, err, ErrBadToken, "the key counts, not its number")
}

// B73: what is no token of ours is refused, and breaks nothing.
func TestOtherTextsAreNoTokens(t *testing.T) {
	r := ring(t)
	good := token(t, r, holdID(1), now.Add(time.Hour))
	for _, s := range []string{
		"", "A", good[:53], good + "A", good + "==", good + good, strings.Repeat("A", 54), strings.Repeat("A", 10_000),
		strings.ToUpper(good), strings.ToLower(good), " " + good[1:], holdID(1),
	} {
		id, err := r.ParseToken(s, now)
		require.ErrorIs(t, err, ErrBadToken, "%.60q", s)
		require.Empty(t, id)
	}
	rapid.Check(t, func(t *rapid.T) {
		_, err := r.ParseToken(rapid.String().Draw(t, "text"), now)
		require.ErrorIs(t, err, ErrBadToken)
	})
}

// An edited token whose time is past is a bad one: who guesses learns nothing.
func TestExpiryIsReadOnlyUnderARightSignature(t *testing.T) {
	r := ring(t)
	late := token(t, r, holdID(1), now.Add(-time.Hour))
	_, err := r.ParseToken(late, now)
	require.ErrorIs(t, err, ErrTokenExpired)
	raw, err := base64.RawURLEncoding.DecodeString(late)
	require.NoError(t, err)
	raw[39] ^= 1
	_, err = r.ParseToken(base64.RawURLEncoding.EncodeToString(raw), now)
	require.ErrorIs(t, err, ErrBadToken)
}

func entry() contract.EntryInput {
	return contract.EntryInput{
		EntryID: contract.EntryID("CHAIR", make([]byte, 11)), SKU: "CHAIR", Quantity: 2, Person: "p",
		Phone: "+31612345678", Name: "Zoë", JoinedAt: now.UTC(), Position: 7, Settings: contract.EntrySettings{TTLSeconds: 5},
	}
}

func TestSeal(t *testing.T) {
	r, in := ring(t), entry()
	sealed, err := r.Seal(in)
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "612345678")
	require.NotContains(t, string(sealed), "CHAIR")
	got, err := r.Unseal(in.EntryID, sealed)
	require.NoError(t, err)
	require.Equal(t, in, got)

	again, err := r.Seal(in)
	require.NoError(t, err)
	require.NotEqual(t, sealed, again, "a fresh nonce each time")
}

func TestASealOpensOnlyForItsEntryUnchanged(t *testing.T) {
	r, in := ring(t), entry()
	sealed, err := r.Seal(in)
	require.NoError(t, err)

	_, err = r.Unseal(contract.EntryID("CHAIR", []byte("another one")), sealed)
	require.Error(t, err, "a number cannot be moved to another entry")
	for i := range sealed {
		sealed[i] ^= 1
		_, err = r.Unseal(in.EntryID, sealed)
		require.Error(t, err, "byte %d", i)
		sealed[i] ^= 1
	}
	for _, n := range []int{0, 1, 11, 12, 27, len(sealed) - 1} {
		_, err = r.Unseal(in.EntryID, sealed[:n])
		require.ErrorContains(t, err, in.EntryID, "%d bytes", n)
	}

	other, err := New(personSecret, []byte("another-main-secret"), []LinkKey{oldLink})
	require.NoError(t, err)
	_, err = other.Unseal(in.EntryID, sealed)
	require.ErrorContains(t, err, "main secret")
}

func TestPersons(t *testing.T) {
	r := ring(t)
	phone, customer := r.PersonOfPhone("+31612345678"), r.PersonOfCustomer("+31612345678")
	require.NotEqual(t, phone, customer, "a customer reference that looks like a number is not that number")
	require.Len(t, phone, 22)
	require.Len(t, customer, 22)
	require.Equal(t, phone, r.PersonOfPhone("+31612345678"))
	require.NotEqual(t, phone, r.PersonOfPhone("+31612345679"))

	otherMain, err := New(personSecret, []byte("another-main-secret"), []LinkKey{newLink})
	require.NoError(t, err)
	require.Equal(t, phone, otherMain.PersonOfPhone("+31612345678"), "only the person secret counts")
	otherPerson, err := New([]byte("another-person-secret"), mainSecret, []LinkKey{oldLink})
	require.NoError(t, err)
	require.NotEqual(t, phone, otherPerson.PersonOfPhone("+31612345678"))
}

func TestNamesOfAHold(t *testing.T) {
	r := ring(t)
	byName := contract.HoldStatus{Customer: "ada", Person: r.PersonOfCustomer("ada")}
	require.Empty(t, r.NamesOf(byName), "her person says it")
	byPhone := contract.HoldStatus{Customer: "ada", Person: r.PersonOfPhone("+31612345678"), OrderRef: "ada"}
	require.Equal(t, []string{r.OrderPrint("ada"), r.CustomerPrint("ada")}, r.NamesOf(byPhone))
	require.NotEqual(t, r.OrderPrint("ada"), r.CustomerPrint("ada"))
	link := contract.HoldStatus{Customer: "entry_x", EntryID: "entry_x", Person: byPhone.Person}
	require.Empty(t, r.NamesOf(link))
}

func TestHoldIDsOfCallers(t *testing.T) {
	r := ring(t)
	id := r.HoldID("CHAIR", "shop", "key-1")
	require.Equal(t, id, r.HoldID("CHAIR", "shop", "key-1"))
	number, err := contract.HoldNumber(id)
	require.NoError(t, err)
	require.Equal(t, contract.SKUNumber("CHAIR"), number)
	require.NotEqual(t, id, r.HoldID("CHAIR", "shop", "key-2"))
	require.NotEqual(t, id, r.HoldID("CHAIR", "other", "key-1"), "a caller never meets the holds of another")
	other, err := New(personSecret, []byte("another-main-secret"), []LinkKey{oldLink})
	require.NoError(t, err)
	require.NotEqual(t, id, other.HoldID("CHAIR", "shop", "key-1"), "nobody without the secret can name it")
}

func TestEntryIDsAreFresh(t *testing.T) {
	r, seen := ring(t), map[string]bool{}
	for range 1000 {
		id := r.NewEntryID("CHAIR")
		number, err := contract.EntryNumber(id)
		require.NoError(t, err)
		require.Equal(t, contract.SKUNumber("CHAIR"), number)
		seen[id] = true
	}
	require.Len(t, seen, 1000)
}

func TestCheckoutSig(t *testing.T) {
	r := ring(t)
	sig := r.CheckoutSig("hold_a", "entry_a", "2026-01-01T00:00:00.000Z")
	require.Len(t, sig, 22)
	for _, other := range []string{
		r.CheckoutSig("hold_b", "entry_a", "2026-01-01T00:00:00.000Z"),
		r.CheckoutSig("hold_a", "entry_b", "2026-01-01T00:00:00.000Z"),
		r.CheckoutSig("hold_a", "entry_a", "2026-01-01T00:00:00.001Z"),
	} {
		require.NotEqual(t, sig, other)
	}
}
