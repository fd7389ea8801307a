package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/contract"
)

// endsAt is the one setting of a policy that is no whole number.
const endsAt = "ends_at"

func (a *app) stockPolicy(asJSON *bool) *cobra.Command {
	return &cobra.Command{
		Use: "policy SKU [NAME=VALUE]...", Short: "Show or change the policy of a SKU",
		Long: `Show the policy of a SKU, or change it: what the shop wants otherwise for it than the
configuration has it. It counts for offers and holds made afterwards.

NAME=VALUE sets, NAME= goes back to the configuration; what is not named stays. Should
somebody else change the policy meanwhile, nothing is changed and the command says so.

` + policyNames(),
		Example: "  holdfast stock policy CHAIR hold_seconds=300 limit_per_person=2\n  holdfast stock policy CHAIR ends_at=2027-01-31T22:00:00Z grace_seconds=",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !contract.ValidSKU(args[0]) {
				return badSKU(args[0])
			}
			changes, err := policyChanges(args[1:])
			if err != nil {
				return err
			}
			d, err := newDoor()
			if err != nil {
				return err
			}
			path := "/v1/stock/" + args[0] + "/policy"
			got, err := d.get(cmd.Context(), path)
			if err != nil {
				return err
			}
			var p policyAnswer
			if err := p.read(got.body); err != nil {
				return err
			}
			if len(changes) > 0 {
				body, err := json.Marshal(p.with(changes))
				if err != nil {
					return err
				}
				match := http.Header{"If-Match": {fmt.Sprintf(`"%s"`, p["policy_version"])}}
				if got, err = d.callWith(cmd.Context(), http.MethodPut, path, bytes.NewReader(body), match); err != nil {
					return err
				}
				if err := p.read(got.body); err != nil {
					return err
				}
			}
			return a.show(got, *asJSON, p.print)
		},
	}
}

// policyNames explains every setting.
func policyNames() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, n := range contract.PolicyNumbers {
		instead := "no limit"
		if n.Key != "" {
			instead = n.Key
		}
		fmt.Fprintf(t, "%s\t%d to %d\tinstead of %s\n", n.Name, n.Least, n.Most, instead)
	}
	fmt.Fprintf(t, "%s\tRFC 3339\tinstead of never\n", endsAt)
	if err := t.Flush(); err != nil {
		panic(err) // a strings.Builder takes everything
	}
	return b.String()
}

// policyChanges reads NAME=VALUE; nil stands for the configuration's.
func policyChanges(args []string) (map[string]any, error) {
	changes := map[string]any{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		number := slices.IndexFunc(contract.PolicyNumbers, func(n contract.PolicyNumber) bool { return n.Name == name })
		_, twice := changes[name]
		switch {
		case !ok:
			return nil, usagef("%q is not NAME=VALUE", arg)
		case twice:
			return nil, usagef("%s is named twice", name)
		case name != endsAt && number < 0:
			return nil, usagef("a policy has no %q; see holdfast stock policy --help", name)
		case value == "":
			changes[name] = nil
		case name == endsAt:
			if _, err := time.Parse(time.RFC3339, value); err != nil {
				return nil, usagef("%s=%s is no instant, such as 2027-01-31T22:00:00Z", name, value)
			}
			changes[name] = value
		default:
			r := contract.PolicyNumbers[number]
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < r.Least || n > r.Most {
				return nil, usagef("%s=%s: it must be a whole number from %d to %d", name, value, r.Least, r.Most)
			}
			changes[name] = n
		}
	}
	return changes, nil
}

// policyAnswer is a policy as the door shows it; numbers stay as they were written.
type policyAnswer map[string]any

func (p *policyAnswer) read(body []byte) error {
	*p = nil
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode((*map[string]any)(p)); err != nil {
		return fmt.Errorf("the door's answer is no policy: %w", err)
	}
	return nil
}

// with is the whole policy after the changes. What a newer door shows and this
// command does not know stays.
func (p policyAnswer) with(changes map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range p {
		if name != "sku" && name != "policy_version" && name != "effective" {
			out[name] = v
		}
	}
	maps.Copy(out, changes)
	return out
}

func (p policyAnswer) print(w io.Writer) error {
	effective, _ := p["effective"].(map[string]any)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "sku\t%v\t\npolicy_version\t%v\t\n", p["sku"], p["policy_version"])
	row := func(name, without string) {
		value, from := effective[name], "configuration"
		if _, own := p[name]; own {
			from = "policy"
		} else if value == nil {
			value = without
		}
		fmt.Fprintf(t, "%s\t%v\t%s\n", name, value, from)
	}
	for _, n := range contract.PolicyNumbers {
		row(n.Name, "none")
	}
	row(endsAt, "never")
	return t.Flush()
}
