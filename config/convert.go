package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	errDuration = errors.New("a duration with its unit, as in 90s, 10m, 48h or 180d")
	errWhole    = errors.New("a whole number")
	errNumber   = errors.New("a number")
	errBool     = errors.New("true or false")
	errText     = errors.New("text; in a file, put it in quotes")
	errList     = errors.New("a list of texts; in one text, separated by commas")
)

// convert is the decode hook: it turns what a file, a variable or a flag gave
// into the type of the field, or says what it must be. Nothing is guessed: an
// empty text is no number, 1.5 no whole number and 600 no duration.
func convert(_, to reflect.Type, v any) (any, error) {
	if to == reflect.TypeFor[time.Duration]() {
		return toDuration(v)
	}
	switch to.Kind() {
	case reflect.Int:
		return toInt(v)
	case reflect.Float64:
		return toFloat(v)
	case reflect.Bool:
		return toBool(v)
	case reflect.String:
		if _, ok := v.(string); !ok {
			return nil, errText
		}
	case reflect.Slice:
		return toList(v)
	}
	return v, nil
}

func toDuration(v any) (any, error) {
	switch v := v.(type) {
	case time.Duration:
		return v, nil
	case string:
		d, err := parseDuration(v)
		if err != nil {
			return nil, errDuration
		}
		return d, nil
	}
	return nil, errDuration
}

func toInt(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case int64:
		return int(v), nil
	case float64: // JSON
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), nil
		}
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, nil
		}
	}
	return nil, errWhole
}

func toFloat(v any) (any, error) {
	switch v := v.(type) {
	case float64, int, int64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f, nil
		}
	}
	return nil, errNumber
}

func toBool(v any) (any, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return nil, errBool
}

func toList(v any) (any, error) {
	switch v := v.(type) {
	case []string:
		return v, nil
	case string:
		if strings.TrimSpace(v) == "" {
			return []string{}, nil
		}
		list := strings.Split(v, ",")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return list, nil
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, errList
			}
			list[i] = s
		}
		return list, nil
	}
	return nil, errList
}

var daysPattern = regexp.MustCompile(`^(\d{1,5})d(.*)$`)

// parseDuration reads a duration of Go that may begin with days: 180d, 1d12h.
func parseDuration(s string) (time.Duration, error) {
	m := daysPattern.FindStringSubmatch(s)
	if m == nil {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	days := time.Duration(n) * day
	if m[2] == "" {
		return days, nil
	}
	rest, err := time.ParseDuration(m[2])
	if err != nil || rest < 0 || rest >= day {
		return 0, fmt.Errorf("%q after the days", m[2])
	}
	return days + rest, nil
}

// formatDuration writes a duration as parseDuration reads it, in the units that
// people write: 180d, 48h, 15m, 1m30s.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	if d%day == 0 && d > 2*day {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
