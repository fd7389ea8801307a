package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"sync"

	"holdfast/dev/stack"
)

// console writes whole lines, from several goroutines.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func (c *console) print(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, s)
}

func (c *console) say(format string, args ...any) {
	c.print("dev: " + fmt.Sprintf(format, args...))
}

// ended is what the supervisor says of a child that ended by itself.
var ended = regexp.MustCompile(`^([a-z]+) died \((.*)\); (.*)$`)

// child shows what the supervisor says. The children's own lines are in their
// log files, where they hide nothing.
func (c *console) child(name, line string) {
	if name != stack.Supervisor {
		return
	}
	if m := ended.FindStringSubmatch(line); m != nil {
		how := "died"
		if m[2] == "exit status 0" { // somebody stopped it
			how = "ended"
		}
		line = fmt.Sprintf("%s %s (%s); %s. Its log is %s", m[1], how, m[2], m[3], filepath.Join(stateDir, "logs", m[1]+".log"))
	}
	c.say("%s", line)
}

func (c *console) text(t text) {
	c.print(fmt.Sprintf("text to %s: %s", t.To, t.Body))
}

// banner says where everything is and what to try.
func (c *console) banner(s *stack.Stack) {
	door := s.URL()
	cli := "go run . "
	if u, err := url.Parse(door); err == nil {
		if _, port, _ := net.SplitHostPort(u.Host); port != "8080" {
			cli = "HOLDFAST_URL=" + door + " " + cli
		}
	}
	ui := s.UIURL()
	if ui == "" {
		ui = "that of the Temporal at " + s.TemporalAddr()
	}
	if s.UIURL() != "" { // the passes of Reconcile, a workflow for each SKU and minute, would hide the rest
		ui += "/namespaces/" + s.Namespace() + "/workflows?query=" + url.QueryEscape(`WorkflowType IN ("Hold","WaitlistEntry","Stock","Payment")`)
	}
	curl := "curl -sS " + door
	json := " -H 'Authorization: Bearer " + stack.APIKey + "' -H 'Content-Type: application/json'"
	c.print(`
Holdfast is up.

  Door            ` + door + `
  Join the line   ` + door + `/join/CHAIR
  Temporal UI     ` + ui + `
  Bearer key      ` + stack.APIKey + `
  Webhook secret  ` + stack.InventorySecret + `
  State and logs  ` + stateDir + ` (make dev RESET=1 starts over)

CHAIR had no unit and TEE 100 at the first start. Try, in another terminal:

  join the line for a chair
    ` + curl + `/v1/waitlist` + json + ` -d '{"sku":"CHAIR","phone":"+12025550101","name":"Ada","consent":true}'
  one chair comes back: the first in line gets a text with a link, shown below
    ` + cli + `stock restock CHAIR 1
  take the chair: open the link of that text in a browser and press the button
  hold a tee as the shop's checkout does: sent again it is the same hold, with
  another Idempotency-Key it is another one
    ` + curl + `/v1/holds` + json + ` -H 'Idempotency-Key: cart-1' -d '{"sku":"TEE","quantity":1,"customer":"ada"}'
  pay for it; HOLD_ID is the hold_id of that answer
    ` + curl + `/v1/holds/HOLD_ID/confirm` + json + ` -d '{"payment_ref":"pay-1"}'
  the counters
    ` + cli + `stock get TEE

Ctrl-C stops everything. Texts, as they are sent:
`)
}
