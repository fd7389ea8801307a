package config

import (
	"reflect"
	"strings"
	"time"
)

// key is one thing that can be set. Its default has the type of its field, its
// rule says in words what is right and checks it.
type key struct {
	name string
	def  any
	rule rule
	doc  string
	// secret values are never shown.
	secret bool
}

const day = 24 * time.Hour

// keys are all keys in the order of the struct. docs/configuration.md is made
// of this table.
var keys = []key{
	{name: "mode", def: ModeProduction, rule: oneOf(ModeProduction, ModeDev), doc: "`dev` accepts the published secrets of `make dev`, and has them as defaults."},
	{name: "shop.name", def: "", rule: shopName(), doc: "How texts and pages name the shop."},
	{name: "shop.locale", def: "en", rule: localeTag(), doc: "The language of texts to shoppers who have said none: `en`, `de`, or one of `sms.words`."},
	{name: "shop.terms_url", def: "", rule: shopPage(), doc: "The terms that a shopper agrees to with a place in line."},
	{name: "shop.privacy_url", def: "", rule: shopPage(), doc: "What the shop does with a number."},
	{name: "shop.support", def: "", rule: support(), doc: "Where a shopper finds a person."},

	{name: "http.public_addr", def: "127.0.0.1:8080", rule: address(), doc: "Where the door listens for shoppers: pages and joins."},
	{name: "http.api_addr", def: "127.0.0.1:8080", rule: address(), doc: "Where it listens for the shop's servers and the inventory webhook."},
	{name: "http.ops_addr", def: "127.0.0.1:8081", rule: address(), doc: "Where it listens for operators: health checks, metrics, the codec. One address may serve all three; what operators see is then open to shoppers."},
	{name: "http.public_url", def: "", rule: publicURL(), doc: "What every link to a shopper begins with."},
	{name: "http.drain_seconds", def: 10, rule: whole(0, 600), doc: "For how many seconds a stopping door still takes requests while its readiness is red, so that load balancers turn away from it. 0 unless said in mode `dev`."},
	{name: "http.trusted_proxies", def: []string{}, rule: proxies(), doc: "Whose `X-Forwarded-For` says where a shopper is. Set it when a proxy or CDN stands before the door: `join.per_address` counts by it."},

	{name: "redis.addrs", def: []string{"127.0.0.1:6379"}, rule: redisAddrs(), doc: "The gate's Redis. Several addresses: Redis Cluster."},
	{name: "redis.username", def: "", doc: "User of the Redis ACL, empty for the default user."},
	{name: "redis.password", def: "", doc: "Its password, unset for none.", secret: true},
	{name: "redis.db", def: 0, rule: redisDB(), doc: "Number of the database; 0 with Redis Cluster."},
	{name: "redis.tls", def: false, rule: rule{right: "true or false"}, doc: "TLS with the system's certificate authorities."},
	{name: "redis.pool_size", def: 64, rule: whole(1, 10_000), doc: "Most connections of one process to one Redis."},
	{name: "redis.timeout", def: 2 * time.Second, rule: between(10*time.Millisecond, 30*time.Second), doc: "Of dialling, and of one command."},

	{name: "temporal.address", def: "", rule: addressOrEmpty(), doc: "Temporal's address. Empty: as the `TEMPORAL_*` variables say, else 127.0.0.1:7233."},
	{name: "temporal.namespace", def: "", doc: "Its namespace. Empty: as the `TEMPORAL_*` variables say, else `default`."},
	{name: "temporal.ui_origins", def: []string{}, rule: uiOrigins(), doc: "Where Temporal's UI is opened, as browsers write it. Its pages may ask `/codec` of the ops listener to decrypt, without a key: see [privacy.md](privacy.md)."},

	{name: "worker.ops_addr", def: "127.0.0.1:8082", rule: address(), doc: "Where the worker listens for operators: health checks and metrics."},
	{name: "worker.deployment", def: "holdfast", rule: deploymentName(), doc: "The Worker Deployment of Temporal that versions of the worker belong to."},
	{name: "worker.build_id", def: "", rule: buildID(), doc: "This worker's version in it, such as a commit. It gets work when it is made current: see [deploy.md](deploy.md). Empty: unversioned, gets work at once."},
	{name: "worker.max_tasks", def: 1000, rule: whole(2, 100_000), doc: "Workflow tasks, each with its calls of the gate, that one worker has in hand at once. Fewer spare a small machine."},
	{name: "worker.max_activities", def: 1000, rule: whole(1, 100_000), doc: "Activities that one worker runs at once: texts, refunds, and what waits for a gate that does not answer."},

	{name: "gate.lease", def: 10 * time.Second, rule: between(2*time.Second, time.Minute), doc: "Within this time a fresh hold must be known to its workflow, else its units are free again."},
	{name: "gate.reopen_wait", def: time.Duration(0), rule: reopenWait(), doc: "How long a gate that closed itself stays closed before it is checked. 0: gate.lease + 10s."},
	{name: "gate.record_retention", def: 30 * day, rule: seconds(time.Minute, 3650*day), doc: "How long ended holds and entries are remembered."},
	{name: "gate.sale_retention", def: 400 * day, rule: seconds(time.Minute, 3650*day), doc: "How long sales and applied stock events are remembered: returns come late, and so do replays."},
	{name: "gate.audit_age", def: 10 * time.Minute, rule: seconds(time.Second, day), doc: "How old a sale must be before the SKU's book counts it, from where Temporal may forget it: more than Temporal's lists of workflows may be behind, and much less than its retention."},
	{name: "gate.fence", def: FenceOn, rule: oneOf(FenceOn, FenceOff), doc: "`off` only for stand-ins of Redis that forget: a loss is then not noticed."},

	{name: "hold.ttl", def: 10 * time.Minute, rule: seconds(5*time.Second, 2*time.Hour), doc: "How long a hold is kept for its shopper."},
	{name: "hold.extension", def: 5 * time.Minute, rule: seconds(0, 2*time.Hour), doc: "What the start of a payment adds, once."},
	{name: "hold.grace", def: time.Minute, rule: seconds(0, 10*time.Minute), doc: "How long past its deadline a hold is kept for a payment that has started."},
	{name: "hold.after", def: "checkout", rule: oneOf("checkout", "page"), doc: "Where a press on the reserve link leads: the shop's checkout, or the hold's page."},

	{name: "offer.window", def: 15 * time.Minute, rule: seconds(5*time.Second, 7*day), doc: "How long an offer may be pressed, from its text on."},
	{name: "offer.max_age", def: 48 * time.Hour, rule: maxAge(), doc: "An offer never lives longer than this, text or no text."},
	{name: "waitlist.ttl", def: 180 * day, rule: seconds(5*time.Second, 400*day), doc: "How long an entry waits before it expires."},
	{name: "join.max_backlog", def: 5000, rule: whole(1, 1_000_000), doc: "Joins not yet known to their workflows, of one SKU; above it a join is asked to come again."},
	{name: "join.workers", def: 32, rule: whole(1, 1000), doc: "Workflows of entries that one door starts at once."},
	{name: "join.per_phone", def: 20, rule: whole(0, 1_000_000), doc: "Joins of one number a day, of all SKUs. 0: no limit."},
	{name: "join.per_address", def: 300, rule: whole(0, 1_000_000), doc: "Joins from one address an hour, without a key; a carrier's customers may share one. 0: no limit."},
	{name: "missed.keep", def: 1, rule: whole(0, 100), doc: "How many turns a person may miss and still keep their place, for the next restock. 0: the first missed turn ends the entry."},

	{name: "quiet.from", def: "00:00", rule: clock(), doc: "When the shop's quiet hours begin, as the clocks of `quiet.zone` show it. From then on texts wait and windows do not run: see [waitlist.md](waitlist.md)."},
	{name: "quiet.to", def: "00:00", rule: quietEnd(), doc: "When they end. Before `quiet.from`: on the next morning. The same: there are none."},
	{name: "quiet.zone", def: "", rule: quietZone(), doc: "The time zone of the shop."},
	{name: "quiet.max_wait", def: 12 * time.Hour, rule: seconds(5*time.Second, 7*day), doc: "An offer whose text would have to wait longer than this for the morning is passed on by then; its person keeps the place. `offer.max_age` counts as well."},

	{name: "sms.provider", def: "", rule: oneOf("twilio", "console"), doc: "Who sends the texts; never guessed. `console` prints them."},
	{name: "sms.segments_per_second", def: 1.0, rule: rate(), doc: "Rate limit of all workers together, in segments."},
	{name: "sms.segments_a_day", def: 10_000, rule: whole(0, 1_000_000_000), doc: "Budget of a day (UTC), in segments; at four fifths of it an error is logged, after it no text is sent. 0: no budget."},
	{name: "sms.allowed_regions", def: []string{}, rule: regions(), doc: "Countries whose numbers may join. Empty: only `phone.default_region`. +1 is many countries, some of them dear."},
	{name: "sms.sent_grace", def: time.Minute, rule: seconds(0, time.Hour), doc: "How long after its acceptance a text without a callback counts as sent."},
	{name: "sms.outbox", def: "", doc: "With `console`: a file that gets one JSON line a text. Empty: none."},
	{name: "sms.words", def: "", doc: "A folder with texts in the shop's own words, one JSON file a locale: see [texts.md](texts.md). Empty: the shipped ones."},
	{name: "sms.twilio.account_sid", def: "", rule: accountSID(), doc: "The Twilio account."},
	{name: "sms.twilio.auth_token", def: "", rule: authToken(), doc: "Its token.", secret: true},
	{name: "sms.twilio.from", def: "", rule: twilioFrom(), doc: "The number or sender id that texts come from."},
	{name: "sms.twilio.messaging_service", def: "", rule: messagingService(), doc: "A messaging service, in place of one number."},
	{name: "sms.twilio.base_url", def: "", rule: standInURL(), doc: "Another API host, for a stand-in. It is told the token and every text."},

	{name: "payment.provider", def: "", rule: oneOf("none", "webhook", "stripe"), doc: "Must be set, never guessed: who is asked for refunds, see [payment.md](payment.md). `none`: money that made no sale waits for a person."},
	{name: "payment.timeout", def: 10 * time.Second, rule: between(time.Second, time.Minute), doc: "Of one call to the shop's endpoint or to Stripe."},
	{name: "payment.webhook.url", def: "", rule: refundEndpoint(), doc: "The shop's endpoint for the event `refund.requested`."},
	{name: "payment.webhook.secrets", def: []string{}, rule: refundSecrets(), doc: "Its secrets (Standard Webhooks); each signs, so that the shop can change them one by one.", secret: true},
	{name: "payment.stripe.key", def: "", rule: stripeKey(), doc: "Stripe's secret or restricted key. Events of the other mode, test or live, are ignored.", secret: true},
	{name: "payment.stripe.webhook_secrets", def: []string{}, rule: stripeHookSecrets(), doc: "Signing secrets of the webhook endpoint in the Stripe Dashboard; each is accepted.", secret: true},
	{name: "payment.stripe.unnamed", def: "list", rule: oneOf("list", "ignore"), doc: "A payment whose metadata names no hold, nor `none`: `list` parks it before a person, `ignore` leaves it alone, for an account that sells other things as well. See [payment.md](payment.md#stripe)."},
	{name: "payment.stripe.base_url", def: "", rule: secureURLOrEmpty(), doc: "Another API host, for a stand-in."},

	{name: "events.url", def: "", rule: eventsEndpoint(), doc: "The shop's endpoint for what happens here, see [events.md](events.md). Empty: nothing is told. It may be that of payment.webhook.url."},
	{name: "events.secrets", def: []string{}, rule: eventsSecrets(), doc: "Its secrets (Standard Webhooks); each signs, so that the shop can change them one by one.", secret: true},
	{name: "events.timeout", def: 10 * time.Second, rule: between(time.Second, 30*time.Second), doc: "Of one delivery, the endpoint's answer included."},
	{name: "events.concurrency", def: 8, rule: whole(1, 100), doc: "Deliveries of one worker at once."},

	{name: "tripwire.pause", def: false, rule: rule{right: "true or false"}, doc: "Pause a SKU when its [tripwire](runbook.md#holdfasttripwire) begins to ring, until a person resumes it. Off: it rings, and the SKU sells on."},

	{name: "metrics.skus", def: []string{}, rule: namedSKUs(), doc: "SKUs whose counters are metrics, `holdfast_units`. Each is eight series in every process."},

	{name: "phone.default_region", def: "US", rule: region(), doc: "The country of numbers typed without one."},

	{name: "secrets.person", def: "", rule: secret(), doc: "Turns phone numbers into persons. Set once, never changed: with it every person would change.", secret: true},
	{name: "secrets.main", def: "", rule: secret(), doc: "Seals what waits in Redis, and makes hold ids and the signatures of checkout links.", secret: true},
	{name: "secrets.links", def: []string{}, rule: linkKeys(), doc: "Keys of reserve links as `id:secret`. The first signs, all are accepted: put a new one in front, drop the old one when its links are past.", secret: true},
	{name: "secrets.api_keys", def: []string{}, rule: apiKeys(), doc: "Bearer keys of the shop's servers as `caller:secret`. A caller may have several while they are changed.", secret: true},
	{name: "secrets.inventory", def: []string{}, rule: webhookSecrets(), doc: "Secrets of the inventory webhook (Standard Webhooks); each is accepted.", secret: true},
	{name: "secrets.payload_keys", def: []string{}, rule: payloadKeys(), doc: "Keys that encrypt what Temporal is told, as `id:key`. The first encrypts, all decrypt: see [privacy.md](privacy.md) for changing them. Unset: Temporal is told in clear.", secret: true},
}

// known is the table by name.
var known = func() map[string]key {
	m := make(map[string]key, len(keys))
	for _, k := range keys {
		m[k.name] = k
	}
	return m
}()

const envPrefix = "HOLDFAST"

// EnvName is the environment variable of a key: HOLDFAST_HOLD_TTL for hold.ttl.
func EnvName(key string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// field is the field of c that a key names.
func (c *Config) field(name string) reflect.Value {
	v := reflect.ValueOf(c).Elem()
	for part := range strings.SplitSeq(name, ".") {
		v = fieldByTag(v, part)
	}
	return v
}

func fieldByTag(v reflect.Value, tag string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("mapstructure") == tag {
			return v.Field(i)
		}
	}
	panic("config: no field for key part " + tag) // the table is wrong; a test walks all of it
}
