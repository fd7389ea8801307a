package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
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

// child shows what the supervisor says. The children's own lines are in their
// log files, where they hide nothing.
func (c *console) child(name, line string) {
	if name == stack.Supervisor {
		c.say("%s", line)
	}
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

CHAIR has no unit, TEE had 100 at first. Try, in another terminal:

  join the line for a chair
    ` + curl + `/v1/waitlist` + json + ` -d '{"sku":"CHAIR","phone":"+12025550101","name":"Ada","consent":true}'
  one chair comes back: Ada gets a text with her link, shown below
    ` + cli + `stock restock CHAIR 1
  hold a tee as the shop's checkout does
    ` + curl + `/v1/holds` + json + ` -H 'Idempotency-Key: cart-1' -d '{"sku":"TEE","quantity":1,"customer":"ada"}'
  pay for it; HOLD_ID is from the answer before
    ` + curl + `/v1/holds/HOLD_ID/confirm` + json + ` -d '{"payment_ref":"pay-1"}'
  the counters
    ` + cli + `stock get TEE

Ctrl-C stops everything. Texts, as they are sent:
`)
}
