package sms

import (
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/rivo/uniseg"
)

// GSM 03.38: what a segment can carry at seven bits a character. One character
// outside it makes the whole text UCS-2, with less than half the room.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€" // two septets each
)

// Room of one segment, and of each segment of a longer text, whose header takes
// some.
const (
	gsmSingle, gsmPart   = 160, 153 // septets
	ucs2Single, ucs2Part = 70, 67   // 16-bit units
)

// Segments is how many segments a text is sent and billed as; 0 for an empty
// one. Nothing straddles two segments: neither an escape and its character, nor
// the halves of a surrogate pair, nor, as Twilio counts, what people take for one
// character.
func Segments(body string) int {
	widths, single, part := gsmWidths(body), gsmSingle, gsmPart
	if widths == nil {
		widths, single, part = ucs2Widths(body), ucs2Single, ucs2Part
	}
	total := 0
	for _, w := range widths {
		total += w
	}
	if total == 0 {
		return 0
	}
	if total <= single {
		return 1
	}
	segments, used := 1, 0
	for _, w := range widths {
		if used+w > part {
			segments++
			used = 0
		}
		used += w
	}
	return segments
}

// gsmWidths is the septets of each character, nil when one is outside GSM-7.
func gsmWidths(body string) []int {
	widths := make([]int, 0, len(body))
	for _, r := range body {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			widths = append(widths, 1)
		case strings.ContainsRune(gsmExtended, r):
			widths = append(widths, 2)
		default:
			return nil
		}
	}
	return widths
}

// ucs2Widths is the 16-bit units of each character as people count them. One that
// has more than a segment has room for is torn, at a code point.
func ucs2Widths(body string) []int {
	widths := make([]int, 0, len(body))
	for g := uniseg.NewGraphemes(body); g.Next(); {
		total, runes := 0, g.Runes()
		for _, r := range runes {
			total += utf16.RuneLen(r)
		}
		if total <= ucs2Part && g.Str() != "\r\n" {
			widths = append(widths, total)
			continue
		}
		for _, r := range runes {
			widths = append(widths, utf16.RuneLen(r))
		}
	}
	return widths
}

var folds = func() *strings.Replacer {
	var pairs []string
	for to, from := range map[string]string{
		"'": "‘’‚‛ʼ´`′", `"`: "“”„‟«»″", "-": "‐‑‒–—―−", "...": "…", "*": "•·", "x": "×",
		"TM": "™", "(R)": "®", "(C)": "©", "": "\u200b\u200c\u200e\u200f\ufeff\u00ad",
		"A": "ÀÁÂÃĀĂĄ", "a": "áâãāăą", "C": "ĆĈĊČ", "c": "çćĉċč", "D": "ĎĐ", "d": "ďđ",
		"E": "ÈÊËĒĖĘĚ", "e": "êëēėęě", "G": "ĞĠĢ", "g": "ğġģ", "I": "ÌÍÎÏĪĮİ", "i": "íîïīįı",
		"L": "ĹĻĽŁ", "l": "ĺļľł", "N": "ŃŅŇ", "n": "ńņň", "O": "ÒÓÔÕŌŐ", "o": "óôõōő",
		"R": "ŔŘ", "r": "ŕř", "S": "ŚŞŠȘ", "s": "śşšș", "T": "ŢŤȚ", "t": "ţťț",
		"U": "ÙÚÛŪŮŰŲ", "u": "úûūůűų", "Y": "ÝŸ", "y": "ýÿ", "Z": "ŹŻŽ", "z": "źżž",
	} {
		for _, r := range from {
			pairs = append(pairs, string(r), to)
		}
	}
	return strings.NewReplacer(pairs...)
}()

// Fold writes with GSM-7 characters what can be written so without loss of
// sense, and makes one space of each run of white space.
func Fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, folds.Replace(s))
	return strings.Join(strings.Fields(s), " ")
}
