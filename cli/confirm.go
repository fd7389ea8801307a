package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// errKept is the end of a command that a person thought better of.
var errKept = errors.New("nothing was changed")

// sure has a person agree to what cannot be undone, by a "yes" in full. Where
// nobody can be asked only --yes will do: a script that hangs helps nobody.
func (a *app) sure(yes bool, consequence string) error {
	if yes {
		return nil
	}
	if !a.std.Terminal {
		return usagef("%s. This cannot be undone; add --yes to do it without being asked", consequence)
	}
	fmt.Fprintf(a.std.Err, "%s. This cannot be undone. Type yes to do it: ", consequence)
	said, err := bufio.NewReader(a.std.In).ReadString('\n')
	if err != nil && said == "" {
		return fmt.Errorf("no answer: %w", errKept)
	}
	if strings.TrimSpace(said) != "yes" {
		return errKept
	}
	return nil
}
