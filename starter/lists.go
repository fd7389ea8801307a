package starter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
)

// page is one page of a list.
type page struct {
	Data       []any   `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

type pageQuery struct {
	limit        int
	cursor, last string
}

// readPage reads limit (1 to 200) and cursor from the query.
func readPage(r *http.Request, usual int) (pageQuery, error) {
	q := r.URL.Query()
	out := pageQuery{limit: usual, cursor: q.Get("cursor")}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 200 {
			return out, badQuery("limit", "must be from 1 to 200")
		}
		out.limit = n
	}
	if len(out.cursor) > 2048 {
		return out, badQuery("cursor", "is not one of ours")
	}
	return out, nil
}

// badQuery complains of a parameter; it has no JSON pointer.
func badQuery(name, detail string) *Problem {
	return problem(validationFailed, "the query parameter %s %s", name, detail)
}

// digest is a short fixed name for a tuple of texts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func encodeCursor(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	s := base64.RawURLEncoding.EncodeToString(raw)
	return &s
}

func decodeCursor(s string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, badQuery("cursor", "is not one of ours")
	}
	return raw, nil
}
