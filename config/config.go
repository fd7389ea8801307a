// Package config reads the one configuration of a Holdfast: defaults, then a
// file, then HOLDFAST_* variables of the environment, then flags.
package config

import "time"

// Config is everything that can be set. The mapstructure tags joined by dots
// are the keys ("hold.ttl"); the variable of a key is HOLDFAST_ and the key in
// capitals with underscores (HOLDFAST_HOLD_TTL).
type Config struct {
	// Mode is "production" or "dev". Only dev accepts the published keys of
	// `make dev`.
	Mode     string   `mapstructure:"mode"`
	Shop     Shop     `mapstructure:"shop"`
	HTTP     HTTP     `mapstructure:"http"`
	Redis    Redis    `mapstructure:"redis"`
	Temporal Temporal `mapstructure:"temporal"`
	Worker   Worker   `mapstructure:"worker"`
	Gate     Gate     `mapstructure:"gate"`
	Hold     Hold     `mapstructure:"hold"`
	Offer    Offer    `mapstructure:"offer"`
	Waitlist Waitlist `mapstructure:"waitlist"`
	Join     Join     `mapstructure:"join"`
	Missed   Missed   `mapstructure:"missed"`
	Quiet    Quiet    `mapstructure:"quiet"`
	SMS      SMS      `mapstructure:"sms"`
	Payment  Payment  `mapstructure:"payment"`
	Events   Events   `mapstructure:"events"`
	Tripwire Tripwire `mapstructure:"tripwire"`
	Metrics  Metrics  `mapstructure:"metrics"`
	Phone    Phone    `mapstructure:"phone"`
	Secrets  Secrets  `mapstructure:"secrets"`

	sources map[string]string // by key; filled by Load
}

// Shop is what texts and pages say of the shop.
type Shop struct {
	Name       string `mapstructure:"name"`
	Locale     string `mapstructure:"locale"` // of shoppers who have said none
	TermsURL   string `mapstructure:"terms_url"`
	PrivacyURL string `mapstructure:"privacy_url"`
	Support    string `mapstructure:"support"` // a URL or an e-mail address
}

// HTTP is the door's listeners.
type HTTP struct {
	PublicAddr   string `mapstructure:"public_addr"` // pages, join
	APIAddr      string `mapstructure:"api_addr"`    // server calls, inventory webhook
	OpsAddr      string `mapstructure:"ops_addr"`    // health, metrics, codec; one address may serve all three
	PublicURL    string `mapstructure:"public_url"`  // what links begin with, no trailing slash
	DrainSeconds int    `mapstructure:"drain_seconds"`
	// TrustedProxies are addresses and networks whose X-Forwarded-For is believed.
	TrustedProxies []string `mapstructure:"trusted_proxies"`
}

// Redis is the gate's server.
type Redis struct {
	Addrs    []string      `mapstructure:"addrs"` // more than one: Cluster
	Username string        `mapstructure:"username"`
	Password string        `mapstructure:"password"`
	DB       int           `mapstructure:"db"`
	TLS      bool          `mapstructure:"tls"`
	PoolSize int           `mapstructure:"pool_size"`
	Timeout  time.Duration `mapstructure:"timeout"` // of one verb
}

// Temporal is the connection; the standard TEMPORAL_* variables and profile
// file are read first, a value here wins over them.
type Temporal struct {
	Address   string   `mapstructure:"address"`
	Namespace string   `mapstructure:"namespace"`
	UIOrigins []string `mapstructure:"ui_origins"` // pages that may ask the codec endpoint
}

// Worker is the worker's listener, the version by which Temporal knows it, see
// docs/deploy.md, and how much it does at once.
type Worker struct {
	OpsAddr       string `mapstructure:"ops_addr"` // health, metrics
	Deployment    string `mapstructure:"deployment"`
	BuildID       string `mapstructure:"build_id"` // empty: unversioned
	MaxTasks      int    `mapstructure:"max_tasks"`
	MaxActivities int    `mapstructure:"max_activities"`
}

// Gate is the Lua gate.
type Gate struct {
	Lease           time.Duration `mapstructure:"lease"`
	ReopenWait      time.Duration `mapstructure:"reopen_wait"` // 0: lease + 10 s
	RecordRetention time.Duration `mapstructure:"record_retention"`
	SaleRetention   time.Duration `mapstructure:"sale_retention"`
	AuditAge        time.Duration `mapstructure:"audit_age"`
	Fence           string        `mapstructure:"fence"` // "on" or "off"
}

// Hold is the clocks of a hold.
type Hold struct {
	TTL       time.Duration `mapstructure:"ttl"`
	Extension time.Duration `mapstructure:"extension"`
	Grace     time.Duration `mapstructure:"grace"`
	After     string        `mapstructure:"after"` // a press leads to "checkout" or "page"
}

// Offer is the clocks of an offer.
type Offer struct {
	Window time.Duration `mapstructure:"window"`
	MaxAge time.Duration `mapstructure:"max_age"`
}

// Waitlist is the clock of an entry.
type Waitlist struct {
	TTL time.Duration `mapstructure:"ttl"`
}

// Join bounds joining.
type Join struct {
	MaxBacklog int `mapstructure:"max_backlog"`
	Workers    int `mapstructure:"workers"`     // entries' workflows started inline at once
	PerPhone   int `mapstructure:"per_phone"`   // a day; 0: no limit
	PerAddress int `mapstructure:"per_address"` // an hour; 0: no limit
}

// Missed says what a missed turn costs.
type Missed struct {
	Keep int `mapstructure:"keep"`
}

// Quiet is the hours in which nobody is texted, as the clocks of the shop's zone
// show them. From and To are HH:MM, equal for none.
type Quiet struct {
	From    string        `mapstructure:"from"`
	To      string        `mapstructure:"to"`
	Zone    string        `mapstructure:"zone"`     // an IANA name, never guessed
	MaxWait time.Duration `mapstructure:"max_wait"` // of one offer for its text
}

// SMS is the sender of texts.
type SMS struct {
	Provider          string        `mapstructure:"provider"` // "twilio" or "console", never guessed
	SegmentsPerSecond float64       `mapstructure:"segments_per_second"`
	SegmentsADay      int           `mapstructure:"segments_a_day"`  // 0: no budget
	AllowedRegions    []string      `mapstructure:"allowed_regions"` // empty: phone.default_region
	SentGrace         time.Duration `mapstructure:"sent_grace"`
	Outbox            string        `mapstructure:"outbox"` // console: a file that gets one JSON line a text
	Words             string        `mapstructure:"words"`  // a folder with texts of the shop's own
	Twilio            Twilio        `mapstructure:"twilio"`
}

// Twilio is the account. From and MessagingService: exactly one.
type Twilio struct {
	AccountSID       string `mapstructure:"account_sid"`
	AuthToken        string `mapstructure:"auth_token"`
	From             string `mapstructure:"from"`
	MessagingService string `mapstructure:"messaging_service"`
	BaseURL          string `mapstructure:"base_url"` // another API host, for a stand-in
}

// Payment is who takes the shop's payments: whom to ask for a refund, and to
// end what a shopper has begun for a hold that is over.
type Payment struct {
	Provider string         `mapstructure:"provider"` // "none", "webhook" or "stripe", never guessed
	Timeout  time.Duration  `mapstructure:"timeout"`  // of one call
	Webhook  PaymentWebhook `mapstructure:"webhook"`
	Stripe   PaymentStripe  `mapstructure:"stripe"`
}

// PaymentWebhook is the shop's endpoint for refund.requested.
type PaymentWebhook struct {
	URL     string   `mapstructure:"url"`
	Secrets []string `mapstructure:"secrets"` // "whsec_…", each signs
}

// PaymentStripe is the Stripe account.
type PaymentStripe struct {
	Key            string   `mapstructure:"key"`
	WebhookSecrets []string `mapstructure:"webhook_secrets"` // "whsec_…", any verifies
	BaseURL        string   `mapstructure:"base_url"`        // another API host, for a stand-in
	Unnamed        string   `mapstructure:"unnamed"`         // payments that name no hold: "list" or "ignore"
}

// Events is the shop's endpoint for what happens here. Without a URL nothing is
// told, and nothing is recorded for telling it.
type Events struct {
	URL         string        `mapstructure:"url"`
	Secrets     []string      `mapstructure:"secrets"`     // "whsec_…", each signs
	Timeout     time.Duration `mapstructure:"timeout"`     // of one delivery
	Concurrency int           `mapstructure:"concurrency"` // deliveries of one worker at once
}

// On says whether the shop wants to be told.
func (e Events) On() bool { return e.URL != "" }

// Tripwire says what happens to a SKU that promises or has sold more than there is, or
// whose books do not add up, beside the alarm.
type Tripwire struct {
	Pause bool `mapstructure:"pause"` // until a person resumes it
}

// Metrics says what is counted beside what always is.
type Metrics struct {
	SKUs []string `mapstructure:"skus"` // whose units are metrics
}

// Phone is how numbers without a country are read.
type Phone struct {
	DefaultRegion string `mapstructure:"default_region"`
}

// Secrets are never logged.
type Secrets struct {
	Person    string   `mapstructure:"person"` // set once, never changed
	Main      string   `mapstructure:"main"`
	Links     []string `mapstructure:"links"`     // "id:secret", the first signs
	APIKeys   []string `mapstructure:"api_keys"`  // "caller:secret"
	Inventory []string `mapstructure:"inventory"` // "whsec_…", any verifies
	// PayloadKeys are "id:base64 of 32 bytes"; the first encrypts, all decrypt.
	PayloadKeys []string `mapstructure:"payload_keys"`
}
