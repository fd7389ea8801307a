package config

import (
	"slices"
	"strings"
)

// Public link shorteners. Carriers drop texts with their links, because whoever sends
// spam hides behind them; a domain of one's own is what the rules of US carriers ask for.
var shorteners = []string{
	"bit.ly", "bl.ink", "buff.ly", "cutt.ly", "dub.sh", "goo.gl", "is.gd", "j.mp", "lnkd.in", "ow.ly", "rb.gy", "rebrand.ly",
	"s.id", "short.io", "shorturl.at", "soo.gd", "t.co", "t.ly", "tiny.cc", "tinyurl.com", "v.gd", "x.gd",
}

// shortener says that a host is one of the known shorteners, or a name below one.
func shortener(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(shorteners, func(s string) bool { return host == s || strings.HasSuffix(host, "."+s) })
}
