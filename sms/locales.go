package sms

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

//go:embed locales/*.json
var shipped embed.FS

// WordsOptions say whose texts are written, and how.
type WordsOptions struct {
	Shop        string
	Locale      string // of who has said none
	Folder      string // of the shop's own words, one file a locale; "" for none
	LongestLink string // as long as any link will be
}

// LoadWords reads the shipped words, then those of the folder, whose locales
// replace shipped ones. The error lists everything that is wrong, tried with the
// longest values that a text can have.
func LoadWords(o WordsOptions) (*Words, error) {
	all, err := readLocales(shipped, "locales")
	if err != nil {
		return nil, err
	}
	if o.Folder != "" {
		own, err := readLocales(os.DirFS(o.Folder), ".")
		if err != nil {
			return nil, fmt.Errorf("sms.words %s: %w", o.Folder, err)
		}
		if len(own) == 0 {
			return nil, fmt.Errorf("sms.words %s: no file there is called after a locale, as in en.json", o.Folder)
		}
		for _, l := range own {
			all = slices.DeleteFunc(all, func(s locale) bool { return s.tag == l.tag })
			all = append(all, l)
		}
	}
	w := &Words{shop: Fold(o.Shop)}
	first, err := language.Parse(o.Locale)
	if err != nil {
		return nil, fmt.Errorf("shop.locale: %q is no language tag, as in en or de-AT", o.Locale)
	}
	slices.SortStableFunc(all, func(a, b locale) int {
		switch {
		case a.tag == b.tag:
			return 0
		case a.tag == first:
			return -1
		case b.tag == first:
			return 1
		}
		return strings.Compare(a.tag.String(), b.tag.String())
	})
	if all[0].tag != first {
		return nil, fmt.Errorf("shop.locale: there are no words for %q; put %s.json into the folder sms.words", o.Locale, o.Locale)
	}
	tags := make([]language.Tag, len(all))
	var wrong []error
	for i, l := range all {
		tags[i] = l.tag
		for _, complaint := range w.check(l, o.LongestLink) {
			wrong = append(wrong, errors.New(complaint))
		}
	}
	w.locales, w.matcher = all, language.NewMatcher(tags)
	return w, errors.Join(wrong...)
}

func readLocales(in fs.FS, folder string) ([]locale, error) {
	names, err := fs.Glob(in, path.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if _, err := fs.ReadDir(in, folder); err != nil {
		return nil, err
	}
	var list []locale
	for _, name := range names {
		tag, err := language.Parse(strings.TrimSuffix(path.Base(name), ".json"))
		if err != nil {
			return nil, fmt.Errorf("%s is not called after a locale, as in en.json or de-AT.json", name)
		}
		raw, err := fs.ReadFile(in, name)
		if err != nil {
			return nil, err
		}
		l := locale{tag: tag}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&l.words); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, l)
	}
	return list, nil
}
