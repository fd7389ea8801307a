package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
)

const mostRows = "200" // of one call, the most that the door gives

// listRows reads all pages of one of the door's lists; what names it for people.
func listRows(ctx context.Context, d *door, path string, query url.Values, what string) ([]json.RawMessage, error) {
	rows := []json.RawMessage{}
	for {
		got, err := d.get(ctx, path+"?"+query.Encode())
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []json.RawMessage `json:"data"`
			Next *string           `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil || page.Data == nil {
			return nil, fmt.Errorf("the door's answer is no list of %s: %.200q", what, got.body)
		}
		rows = append(rows, page.Data...)
		if page.Next == nil {
			return rows, nil
		}
		query.Set("cursor", *page.Next)
	}
}

// rowsJSON is one JSON list of what the door wrote.
func rowsJSON(out io.Writer, rows []json.RawMessage) error {
	body, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return indent(out, body)
}
