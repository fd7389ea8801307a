package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// pause makes the commands pause and resume, which undo each other.
func (a *app) pause(word, short, long string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: word + " SKU", Short: short,
		Long: long + "\n\nIt is safe to repeat.\n\n" + accessByName,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeSKU,
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := ofSKU(cmd.Context(), args[0], "/"+word, struct{}{})
			if err != nil {
				return err
			}
			return a.show(got, asJSON, got.printStock)
		},
	}
	return jsonFlag(cmd, &asJSON)
}

// completeSKU offers the SKUs of the door to a shell that completes a command line.
func completeSKU(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	d, err := newDoor()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	rows, err := stockRows(cmd.Context(), d)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	skus := make([]string, 0, len(rows))
	for _, row := range rows {
		var s struct {
			SKU string `json:"sku"`
		}
		if json.Unmarshal(row, &s) == nil {
			skus = append(skus, s.SKU)
		}
	}
	return skus, cobra.ShellCompDirectiveNoFileComp
}
