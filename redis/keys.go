package redis

// Keys of a SKU. All carry the hash tag {sku}, so that a script's keys live on
// one node of a Cluster. The order is that of KEYS in prelude.lua.
var keyNames = [...]string{
	"stock", "holds", "entries", "people", "line", "fresh", "leases", "outbox", "parcels", "events", "purge", "ledger",
	"parked", "tally",
}

const (
	keySKUs     = "hf:skus"  // hash: SKU number → SKU; field mapWhole when it was read whole
	keyIdem     = "hf:idem:" // + caller and key: an idempotency record
	mapWhole    = "*"
	keyPrefix   = "hf:{"
	keyTagClose = "}:"
)

// key builds one key of a SKU.
func key(sku, name string) string { return keyPrefix + sku + keyTagClose + name }

// keysOf builds all keys of a SKU in the order of the scripts.
func keysOf(sku string) []string {
	keys := make([]string, len(keyNames))
	for i, name := range keyNames {
		keys[i] = key(sku, name)
	}
	return keys
}
