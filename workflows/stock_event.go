package workflows

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/contract"
)

const maxUnits = 1_000_000_000 // of one event

// validateEvent says what is wrong with a stock event that any client of
// Temporal may have sent.
func validateEvent(ev contract.StockEvent) error {
	if err := validateName("event_id", ev.EventID); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(ev.Reason) + utf8.RuneCountInString(ev.Actor); n > maxSaid {
		return fmt.Errorf("reason and actor have %d characters, at most %d", n, maxSaid)
	}
	switch ev.Kind {
	case contract.StockRestock:
		return within("units", ev.Units, 1, maxUnits)
	case contract.StockCorrection:
		if ev.Delta == 0 {
			return fmt.Errorf("delta is 0, a correction moves something")
		}
		return within("delta", ev.Delta, -maxUnits, maxUnits)
	case contract.StockReturn:
		if err := validateName("return_id", ev.ReturnID); err != nil {
			return err
		}
		if _, err := contract.HoldNumber(ev.HoldID); err != nil {
			return fmt.Errorf("hold_id %q: %w", ev.HoldID, err)
		}
		return within("units", ev.Units, 1, maxUnits)
	case contract.StockLevel:
		if err := within("version", ev.Version, 1, contract.MaxLevelVersion); err != nil {
			return err
		}
		if err := within("counts_sold", ev.CountsSold, 0, maxUnits); err != nil {
			return err
		}
		return within("units", ev.Units, 0, maxUnits)
	}
	return fmt.Errorf("kind %q is none of %s, %s, %s, %s", ev.Kind,
		contract.StockRestock, contract.StockCorrection, contract.StockReturn, contract.StockLevel)
}

// maxName bounds an id, in characters: the book carries hundreds from run to run,
// and a payload that the server refuses would end it.
const maxName = 128

// validateName wants a name of one line: the gate keeps event ids and return ids
// side by side and tells them apart by a line break.
func validateName(member, name string) error {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s %q is empty or has control characters", member, name)
	}
	if n := utf8.RuneCountInString(name); n > maxName {
		return fmt.Errorf("%s has %d characters, at most %d", member, n, maxName)
	}
	return nil
}

func within(member string, n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d, it must be from %d to %d", member, n, least, most)
	}
	return nil
}
