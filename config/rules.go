package config

import (
	"fmt"
	"math"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"

	"holdfast/contract"
	"holdfast/quiet"
)

// rule says what is right for a key. check answers "" when v is, else what v
// must be; it must not repeat a secret. Without check everything is right.
type rule struct {
	right string
	check func(v any, c *Config) string
}

// must is the rule of a predicate whose complaint is always the same.
func must[T any](right string, ok func(v T, c *Config) bool) rule {
	return rule{right: right, check: func(v any, c *Config) string {
		if ok(v.(T), c) {
			return ""
		}
		return right
	}}
}

func oneOf(words ...string) rule {
	return must(strings.Join(words, " or "), func(v string, _ *Config) bool {
		for _, w := range words {
			if v == w {
				return true
			}
		}
		return false
	})
}

func whole(least, most int) rule {
	return must(fmt.Sprintf("%d to %d", least, most), func(v int, _ *Config) bool { return v >= least && v <= most })
}

func between(least, most time.Duration) rule {
	return must(formatDuration(least)+" to "+formatDuration(most), func(v time.Duration, _ *Config) bool {
		return v >= least && v <= most
	})
}

// seconds is for what crosses a wire as whole seconds.
func seconds(least, most time.Duration) rule {
	return must(formatDuration(least)+" to "+formatDuration(most)+", in whole seconds", func(v time.Duration, _ *Config) bool {
		return v >= least && v <= most && v%time.Second == 0
	})
}

// Temporal wants no dot and no colon in the name of a deployment, and nothing
// that begins with two underscores.
var (
	deploymentForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	buildForm      = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._+-]{0,99})?$`)
)

func deploymentName() rule {
	return must("1 to 100 letters, digits, `_` or `-`, a letter or digit first", func(v string, _ *Config) bool { return deploymentForm.MatchString(v) })
}

func buildID() rule {
	return must("at most 100 letters, digits, `.`, `_`, `+` or `-`, a letter or digit first; or empty", func(v string, _ *Config) bool { return buildForm.MatchString(v) })
}

func reopenWait() rule {
	return must("at least gate.lease, at most 1h, in whole seconds; 0 for gate.lease + 10s", func(v time.Duration, c *Config) bool {
		return v == 0 || v >= c.Gate.Lease && v <= time.Hour && v%time.Second == 0
	})
}

func maxAge() rule {
	return must("at least offer.window, at most 30d, in whole seconds", func(v time.Duration, c *Config) bool {
		return v >= c.Offer.Window && v <= 30*day && v%time.Second == 0
	})
}

func clock() rule {
	return must("a time of day, 00:00 to 23:59", func(v string, _ *Config) bool {
		_, err := quiet.Clock(v)
		return err == nil
	})
}

// quietEnd is at fault when both are times of day and no quiet hours.
func quietEnd() rule {
	return must("a time of day, 00:00 to 23:59, at most 21 hours after quiet.from", func(v string, c *Config) bool {
		if _, err := quiet.Clock(v); err != nil {
			return false
		}
		_, wrong := quiet.Clock(c.Quiet.From)
		_, err := quiet.New(c.Quiet.From, v, "UTC")
		return wrong != nil || err == nil
	})
}

// quietZone is wanted as soon as there are quiet hours: the machine's own zone, in
// a container UTC, would be a wrong guess.
func quietZone() rule {
	return must("an IANA time zone, as in America/New_York; empty only while quiet.from and quiet.to are the same", func(v string, c *Config) bool {
		if v == "" {
			return c.Quiet.From == c.Quiet.To
		}
		_, err := quiet.Zone(v)
		return err == nil
	})
}

func rate() rule {
	return must("more than 0, at most 10000", func(v float64, _ *Config) bool {
		return !math.IsNaN(v) && v > 0 && v <= 10_000
	})
}

func shopName() rule {
	return must("1 to 60 characters in one line", func(v string, _ *Config) bool {
		return strings.TrimSpace(v) != "" && utf8.RuneCountInString(v) <= 60 && !strings.ContainsFunc(v, unicode.IsControl)
	})
}

const addressRight = "host:port, as in 127.0.0.1:8080"

func isAddress(v string) bool {
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func address() rule {
	return must(addressRight, func(v string, _ *Config) bool { return isAddress(v) })
}

func addressOrEmpty() rule {
	return must(addressRight+", or empty", func(v string, _ *Config) bool { return v == "" || isAddress(v) })
}

func redisAddrs() rule {
	return must("at least one host:port", func(v []string, _ *Config) bool {
		for _, a := range v {
			if !isAddress(a) {
				return false
			}
		}
		return len(v) > 0
	})
}

func redisDB() rule {
	return must("0 to 1000; 0 when redis.addrs names several", func(v int, c *Config) bool {
		return v == 0 || v > 0 && v <= 1000 && len(c.Redis.Addrs) < 2
	})
}

// webURL parses an absolute http(s) URL without user, query or fragment.
func webURL(v string) (*url.URL, bool) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(v, "#") {
		return nil, false
	}
	return u, true
}

func publicURL() rule {
	return must("an absolute https URL without a slash at its end, of a domain of your own: carriers drop texts with links of public shorteners; http only in dev or for a loopback host", func(v string, c *Config) bool {
		u, ok := webURL(v)
		return ok && !strings.HasSuffix(v, "/") && secure(u, c) && !shortener(u.Hostname())
	})
}

// secure says that what travels there is not for everybody to read.
func secure(u *url.URL, c *Config) bool {
	return u.Scheme == "https" || c.Mode == ModeDev || loopback(u.Hostname())
}

func secureURLOrEmpty() rule {
	return must("an absolute https URL, http only in dev or for a loopback host, or empty", func(v string, c *Config) bool {
		u, ok := webURL(v)
		return v == "" || ok && secure(u, c)
	})
}

// standInURL is stricter than secure: a stand-in is sent the account's token, and
// mode dev is no reason to send that over a network in clear.
func standInURL() rule {
	return must("an absolute https URL, http only for a loopback host, or empty", func(v string, _ *Config) bool {
		u, ok := webURL(v)
		return v == "" || ok && (u.Scheme == "https" || loopback(u.Hostname()))
	})
}

// uiOrigins wants origins as a browser writes them, for they are compared letter
// by letter. Whoever is no browser can claim any origin, so the listener that
// believes them must not be the one of the shoppers.
func uiOrigins() rule {
	const right = "origins such as https://temporal.example or http://127.0.0.1:8233: lower case, no path, no port that goes without saying"
	return rule{right: right + "; outside dev only when http.ops_addr is not http.public_addr", check: func(v any, c *Config) string {
		for _, origin := range v.([]string) {
			u, ok := webURL(origin)
			if !ok || u.Path != "" || origin != strings.ToLower(origin) || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
				return right
			}
		}
		if len(v.([]string)) > 0 && c.Mode != ModeDev && c.HTTP.OpsAddr == c.HTTP.PublicAddr {
			return "empty while http.ops_addr is http.public_addr: whoever reaches that listener can claim to be the UI"
		}
		return ""
	}}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var (
	accountPattern = regexp.MustCompile(`^AC[0-9a-f]{32}$`)
	servicePattern = regexp.MustCompile(`^MG[0-9a-f]{32}$`)
)

// withTwilio is a rule that counts only when Twilio sends the texts.
func withTwilio(right string, ok func(v string, c *Config) bool) rule {
	return must(right, func(v string, c *Config) bool { return c.SMS.Provider != "twilio" || ok(v, c) })
}

func accountSID() rule {
	return withTwilio("AC and 32 hexadecimal digits, when sms.provider is twilio", func(v string, _ *Config) bool {
		return accountPattern.MatchString(v)
	})
}

func authToken() rule {
	return withTwilio("set, when sms.provider is twilio", func(v string, _ *Config) bool { return v != "" })
}

func twilioFrom() rule {
	return withTwilio("set, when sms.provider is twilio, unless sms.twilio.messaging_service is: exactly one of the two", func(v string, c *Config) bool {
		return (v == "") != (c.SMS.Twilio.MessagingService == "")
	})
}

func messagingService() rule {
	return withTwilio("MG and 32 hexadecimal digits, or empty", func(v string, _ *Config) bool {
		return v == "" || servicePattern.MatchString(v)
	})
}

func localeTag() rule {
	return must("a language tag, as in en or de-AT", func(v string, _ *Config) bool {
		_, err := language.Parse(v)
		return err == nil && v != ""
	})
}

// shopPage is a page of the shop that whoever texts in its name must have.
func shopPage() rule {
	return withTwilio("an absolute https URL, when sms.provider is twilio", func(v string, c *Config) bool {
		u, ok := webURL(v)
		return ok && secure(u, c)
	})
}

func support() rule {
	return withTwilio("an absolute https URL or an e-mail address, when sms.provider is twilio", func(v string, c *Config) bool {
		if u, ok := webURL(v); ok {
			return secure(u, c)
		}
		a, err := mail.ParseAddress(v)
		return err == nil && a.Address == v
	})
}

func regions() rule {
	return must("countries in two capital letters, as in US,CA", func(v []string, _ *Config) bool {
		for _, r := range v {
			if !phonenumbers.GetSupportedRegions()[r] {
				return false
			}
		}
		return true
	})
}

func proxies() rule {
	return must("addresses or networks, as in 10.0.0.7,192.0.2.0/24", func(v []string, _ *Config) bool {
		for _, p := range v {
			if _, ok := Network(p); !ok {
				return false
			}
		}
		return true
	})
}

// Network reads an item of http.trusted_proxies: an address or a network.
func Network(item string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(item); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(item)
	return p.Masked(), err == nil
}

// mostNamedSKUs bounds the series of metrics.
const mostNamedSKUs = 50

func namedSKUs() rule {
	return must(fmt.Sprintf("at most %d SKUs, each once", mostNamedSKUs), func(v []string, _ *Config) bool {
		seen := map[string]bool{}
		for _, sku := range v {
			if !contract.ValidSKU(sku) || seen[sku] {
				return false
			}
			seen[sku] = true
		}
		return len(v) <= mostNamedSKUs
	})
}

func region() rule {
	return must("a country in two capital letters, as in US", func(v string, _ *Config) bool {
		return phonenumbers.GetSupportedRegions()[v]
	})
}
