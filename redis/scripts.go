package redis

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"holdfast/contract"
)

//go:embed *.lua
var luaFiles embed.FS

// script is one verb, put together as prelude.lua says.
type script struct {
	name  string
	files []string
	// shebang makes Redis refuse the script before its first write when memory
	// is short; plain is for the stand-in, which does not know the header.
	shebang, plain *goredis.Script
}

// all verbs, in the order of their loading.
var all []*script

func load(name string, files ...string) *script {
	if files == nil {
		files = []string{"prelude", "records", "endings", "settle", name}
	}
	s := &script{name: name, files: files}
	s.assemble(func(file string) string {
		text, err := luaFiles.ReadFile(file)
		if err != nil {
			panic(err) // embedded: cannot fail in a binary that built
		}
		return string(text)
	})
	all = append(all, s)
	return s
}

func (s *script) assemble(read func(file string) string) {
	text := fmt.Sprintf("local LAYOUT = %d\n", layout)
	for _, file := range s.files {
		text += read(file + ".lua")
	}
	s.shebang, s.plain = goredis.NewScript("#!lua\n"+text), goredis.NewScript(text)
}

// loadRepair is load of a verb that also works on a closed SKU which is rebuilt.
func loadRepair(name string) *script {
	return load(name, "prelude", "records", "endings", "settle", "repairing", name)
}

var (
	verbStock      = load("stock")
	verbJoin       = load("join")
	verbLeave      = load("leave")
	verbReserve    = load("reserve", "prelude", "refusal", "walk_in", "records", "endings", "settle", "reserve")
	verbAdoptHold  = load("adopt_hold")
	verbAdoptEntry = load("adopt_entry")
	verbAdoptOffer = load("adopt_offer")
	verbTold       = load("told")
	verbConfirm    = load("confirm")
	verbUnconfirm  = load("unconfirm")
	verbRelease    = load("release")
	verbLapse      = load("lapse")
	verbRefund     = load("refund")
	verbSnapshot   = load("snapshot")
	verbRead       = load("read")
	verbWhy        = load("why")
	verbDrain      = load("drain")
	verbOpen       = load("open")
	verbRenew      = load("renew")
	verbSettings   = loadRepair("settings")
	verbTrim       = load("trim")

	verbRepairGone  = loadRepair("repair_gone")
	verbRepairHold  = loadRepair("repair_hold")
	verbRepairEntry = loadRepair("repair_entry")
	verbRepairPlace = loadRepair("repair_place")
	verbRepairCount = loadRepair("repair_count")

	verbRebuildBegin  = load("rebuild_begin")
	verbRebuildHold   = loadRepair("rebuild_hold")
	verbRebuildClaims = loadRepair("rebuild_claims")
	verbRebuildOpen   = loadRepair("rebuild_open")
)

// run calls a verb and answers its reply, or *ClosedError, *LayoutError or
// ErrUnavailable.
func (g *Gate) run(ctx context.Context, v *script, sku string, args ...any) (reply, error) {
	if !contract.ValidSKU(sku) {
		return nil, fmt.Errorf("gate %s: %q is not a sku", v.name, sku)
	}
	if g.opts.Lease <= 0 || g.opts.RecordRetention <= 0 || g.opts.SaleRetention <= 0 || g.opts.OfferMaxAge <= 0 {
		return nil, fmt.Errorf("gate %s: lease, retentions and offer age must be set, not %+v", v.name, g.opts)
	}
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails since Go 1.24
	fenced := 1
	s := v.shebang
	if g.opts.FenceOff {
		fenced, s = 0, v.plain
	}
	argv := make([]any, 0, 9+len(args))
	argv = append(argv, nonce[:], contract.SKUNumber(sku), g.opts.Lease.Milliseconds(), g.opts.RecordRetention.Milliseconds(),
		g.opts.SaleRetention.Milliseconds(), fenced, g.testClock, g.opts.OfferMaxAge.Milliseconds(), g.opts.MissedKeep)
	argv = append(argv, args...)
	began := time.Now()
	raw, err := s.Run(ctx, g.rdb, keysOf(sku), argv...).Slice()
	took := time.Since(began)
	if err != nil {
		err = g.failed(ctx, v, sku, err)
		g.opts.Observer.Verb(v.name, failure(err), took)
		return nil, err
	}
	r := reply(raw)
	g.opts.Observer.Verb(v.name, r.str(0), took)
	if r.str(0) == outcomeClosed {
		return nil, &ClosedError{SKU: sku, ReplID: r.str(1), Missing: r.int(2) == 1}
	}
	if r.str(0) == outcomeLayout {
		return nil, &LayoutError{SKU: sku, Found: r.int(1), Ours: r.int(2)}
	}
	return r, nil
}

// decide repeats a verb while it answers again: more leases had ended, or more of
// the line was to be served, than one call may touch, and a refusal would be final.
// Each call does its bounded part, so that it does not hold up others.
func (g *Gate) decide(ctx context.Context, v *script, sku string, args ...any) (reply, error) {
	woken := false
	for {
		r, err := g.run(ctx, v, sku, args...)
		if err != nil {
			return nil, err
		}
		woken = woken || r.int(1) == 1
		if r.str(0) == string(Again) {
			continue
		}
		if woken {
			r[1] = int64(1) // it is said once in a second
		}
		return r, nil
	}
}

// transient are the errors of a server that may answer later, or elsewhere.
var transient = []string{
	"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS", "OOM", "BUSY",
	"NOAUTH", "WRONGPASS", "NOPERM", "MISCONF", "UNKILLABLE", "ERR max number of clients",
}

// failed sorts an error of a script run. One that the script itself raised may
// have left half of its writes: the SKU is closed until it was checked.
func (g *Gate) failed(ctx context.Context, v *script, sku string, err error) error {
	var answered goredis.Error
	if !errors.As(err, &answered) || errors.Is(err, goredis.Nil) {
		return fmt.Errorf("%w: %s of %s: %w", ErrUnavailable, v.name, sku, err)
	}
	for _, prefix := range transient {
		if strings.HasPrefix(answered.Error(), prefix) {
			return fmt.Errorf("%w: %s of %s: %w", ErrUnavailable, v.name, sku, err)
		}
	}
	g.log.Error("gate script failed; the sku is closed until it was checked", "verb", v.name, "sku", sku, "error", err)
	if err := g.rdb.HDel(context.WithoutCancel(ctx), key(sku, "stock"), "fence").Err(); err != nil {
		g.log.Error("the sku could not be closed", "sku", sku, "error", err)
	}
	return &ClosedError{SKU: sku}
}
