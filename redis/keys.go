package redis

import "strings"

// Keys of a SKU. All carry the hash tag {sku}, so that a script's keys live on
// one node of a Cluster. The order is that of KEYS in prelude.lua.
var keyNames = [...]string{
	"stock", "holds", "entries", "people", "line", "fresh", "leases", "outbox", "parcels", "events", "purge", "ledger",
	"parked", "tally", "offers", "limited", "back",
}

// layout is the number of the way in which keys, records and ledger lines are laid
// out. Each SKU carries that of the scripts that opened it. docs/gate.md says how one
// changes it.
const layout = 3

const (
	keySKUs    = "hf:skus"     // hash: SKU number → SKU; field mapWhole when it was read whole
	keyIdem    = "hf:idem:"    // + caller and key: an idempotency record
	keyPayment = "hf:payment:" // + hash of a sealed reference: whose a payment is
	keyNamed   = "hf:named:"   // + print of an order, customer or payment of the shop's: set of its holds
	// holds that keep money of another amount than was announced, by when it was told, ms
	keyOtherAmount = "hf:other-amount"
	mapWhole       = "*"
	keyPrefix      = "hf:{"
	keyTagClose    = "}:"
)

// key builds one key of a SKU.
func key(sku, name string) string { return keyPrefix + sku + keyTagClose + name }

// keysOf builds all keys of a SKU in the order of the scripts, as parts of one
// string: it is done at each call.
func keysOf(sku string) []string {
	size := 0
	for _, name := range keyNames {
		size += len(keyPrefix) + len(sku) + len(keyTagClose) + len(name)
	}
	var all strings.Builder
	all.Grow(size)
	keys := make([]string, len(keyNames))
	for i, name := range keyNames {
		from := all.Len()
		for _, part := range []string{keyPrefix, sku, keyTagClose, name} {
			all.WriteString(part)
		}
		keys[i] = all.String()[from:]
	}
	return keys
}
