package redis

import (
	"errors"
	"fmt"

	"holdfast/contract"
)

// The door and the workflows refuse bad input in words of their own, each at its
// edge. These checks are the last line: taking -1 units would give one, and an
// empty person would be everybody.

const (
	mostUnits = 1_000_000_000
	// mostVersion is the largest number that a script compares exactly.
	mostVersion = 1 << 53
	mostItems   = 500 // of one drain
)

// invalid joins what is wrong with a request, nil when nothing is.
func invalid(verb string, faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("gate %s: bad request: %w", verb, err)
	}
	return nil
}

func named(what, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty", what)
	}
	return nil
}

func within(what string, n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d, not %d to %d", what, n, least, most)
	}
	return nil
}

func badEvent(ev contract.StockEvent) error {
	faults := []error{named("event id", ev.EventID)}
	switch ev.Kind {
	case contract.StockRestock:
		faults = append(faults, within("units", ev.Units, 1, mostUnits))
	case contract.StockCorrection:
		faults = append(faults, within("delta", ev.Delta, -mostUnits, mostUnits))
		if ev.Delta == 0 {
			faults = append(faults, errors.New("delta is 0, which corrects nothing"))
		}
	case contract.StockReturn:
		faults = append(faults, within("units", ev.Units, 1, mostUnits), named("hold id", ev.HoldID), named("return id", ev.ReturnID))
	case contract.StockLevel:
		faults = append(faults, within("units", ev.Units, 0, mostUnits), within("version", ev.Version, 0, mostVersion),
			within("counts sold", ev.CountsSold, 0, mostUnits))
	default:
		faults = append(faults, fmt.Errorf("%q is not a kind of stock event", ev.Kind))
	}
	return invalid("stock", faults...)
}

func badReserve(req ReserveRequest) error {
	if req.Press {
		return invalid("reserve", named("hold id", req.HoldID))
	}
	return invalid("reserve", named("hold id", req.HoldID), named("person", req.Person), within("units", req.Units, 1, mostUnits))
}

func badAdopt(req AdoptHoldRequest) error {
	faults := []error{named("hold id", req.HoldID)}
	if req.HoldFor <= 0 {
		faults = append(faults, fmt.Errorf("the time to hold for is %s, not above 0", req.HoldFor))
	}
	if req.Extend != nil && req.Extend.By < 0 {
		faults = append(faults, fmt.Errorf("the extension is %s, below 0", req.Extend.By))
	}
	if req.ByWorkflow { // it may have to be tried afresh
		faults = append(faults, named("person", req.Person), within("units", req.Units, 1, mostUnits))
	}
	return invalid("adopt", faults...)
}

func badLeave(req LeaveRequest) error {
	fault := named("entry id", req.EntryID)
	switch req.State {
	case contract.EntryLeft, contract.EntryExpired, contract.EntryOptedOut, contract.EntryUnreachable, contract.EntryRemoved:
		return invalid("leave", fault)
	}
	return invalid("leave", fault, fmt.Errorf("%q is not how an entry is left", req.State))
}

func badSettings(req SettingsRequest) error {
	if req.Policy != nil {
		if err := req.Policy.Validate(); err != nil {
			return invalid("settings", err)
		}
	}
	if req.Limit == nil {
		return nil
	}
	return invalid("settings", within("limit", *req.Limit, 0, mostUnits))
}
