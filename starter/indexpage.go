package starter

import (
	"errors"
	"net/http"
	"slices"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/redis"
)

const indexMost = 100 // SKUs shown

type indexItem struct {
	SKU       string
	Title     string
	State     contract.SKUState
	OpenToAll int64
	Waiting   int64
}

type indexBody struct {
	Items []indexItem
	More  int // SKUs that are not shown
}

// indexPage lists the SKUs for a developer. Elsewhere the shop shows what it
// sells, and its line is no business of whoever finds the address.
func (d *Door) indexPage(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.Mode != config.ModeDev {
		return problem(unknownLink, "there is no page at this address")
	}
	skus, err := d.gate.SKUs(r.Context())
	if err != nil {
		return err
	}
	slices.Sort(skus)
	shown := skus[:min(len(skus), indexMost)]
	b := indexBody{More: len(skus) - len(shown)}
	for _, sku := range shown {
		c, about, err := d.gate.Snapshot(r.Context(), sku)
		var closed *redis.ClosedError
		switch {
		case errors.As(err, &closed):
			d.metClosed(closed)
			c.State = contract.SKUClosed
		case err != nil:
			return err
		}
		b.Items = append(b.Items, indexItem{SKU: sku, Title: titleOf(sku, about), State: c.State, OpenToAll: c.OpenToAll, Waiting: c.Waiting})
	}
	words := d.pages.of(r)
	return d.render(w, words, "index", view{Title: words.plain("index_heading"), Body: b})
}
