package ground

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Chinese is written without spaces. Of a run of characters only those parts are
// taken apart that are compared: numerals with what they count, and negators.

var hanDigits = map[rune]float64{'〇': 0, '零': 0, '一': 1, '二': 2, '两': 2, '兩': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}

// hanUnits are the names of units in Chinese, longest first.
var hanUnits = hanNames(units)

func hanNames(all map[string]string) (names []string) {
	for name := range all {
		if r, _ := utf8.DecodeRuneInString(name); ideographic(r) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return names
}

// counters stand between a number and what it counts.
const counters = "个個名人次份项項条條台件位级級页頁倍期届"

// hanPercent goes before its number.
const hanPercent = "百分之"

// hanNegators turn around what follows, but for the words in hanPositives.
const hanNegators = "不没沒无無未非勿"

var hanPositives = strings.Fields("不得超过 不得超過 不超过 不超過 不少于 不少於 不低于 不低於 不高于 不多于 不晚于 不迟于 不早于 不仅 不僅 不但 不同 不断 不斷 不管 不久 无论 無論 无线 無線 未来 未來 非常")

// han takes apart a run; afterNumber: a number in digits stands right before it.
func han(run string, afterNumber bool) (parts []string) {
	from := 0
	for at := 0; at < len(run); {
		n, words := hanAt(run[at:], afterNumber && at == from)
		if len(words) > 0 {
			if at > from {
				parts = append(parts, run[from:at])
			}
			parts, from = append(parts, words...), at+n
			last := parts[len(parts)-1]
			afterNumber = word{text: last}.number() || scales[last] > 0
		}
		at += n
	}
	if from < len(run) {
		parts = append(parts, run[from:])
	}
	return parts
}

// hanAt reads what a text begins with, in n bytes, and the words that it is; none, if
// it is part of the word around it.
func hanAt(text string, afterNumber bool) (n int, words []string) {
	character := first(text)
	if measure := cmp.Or(prefix(text, hanUnits), hanScale(text)); afterNumber && measure != "" {
		return len(measure), []string{measure}
	}
	if rest, found := strings.CutPrefix(text, hanPercent); found {
		if value, digits := hanNumber(rest); digits > 0 {
			return len(hanPercent) + digits, []string{format(value), "%"}
		}
	}
	if value, digits := hanNumber(text); digits > 0 && counted(text, digits) {
		return digits, []string{format(value)}
	} else if digits > 0 {
		return max(len(character), digits-len("百")), nil // its last character may begin a percentage
	}
	if positive := prefix(text, hanPositives); positive != "" {
		return len(positive), nil
	}
	if strings.Contains(hanNegators, character) {
		return len(character), []string{character}
	}
	return len(character), nil
}

// hanScale is the scale that a text begins with after digits, as in 3万 and 5千.
func hanScale(text string) string {
	if character := first(text); scales[character] > 0 && !strings.HasPrefix(text, "百分") {
		return character
	}
	return ""
}

func prefix(text string, of []string) string {
	for _, p := range of {
		if strings.HasPrefix(text, p) {
			return p
		}
	}
	return ""
}

// counted reports a numeral before a unit or a counter; "one of" is no number.
func counted(text string, digits int) bool {
	rest := text[digits:]
	counter, n := utf8.DecodeRuneInString(rest)
	return prefix(rest, hanUnits) != "" || n > 0 && strings.ContainsRune(counters, counter) && text[:digits] != "一"
}

// hanNumber reads the numeral that a text begins with, in so many bytes; 0: none.
// One of great scales alone, as in "tens of thousands", is none.
func hanNumber(text string) (value float64, bytes int) {
	if scales[first(text)] >= 1e4 {
		return 0, 0
	}
	n := hanNumeral{next: 1}
	for at, r := range text {
		if !n.read(r) {
			return n.value(), at
		}
	}
	return n.value(), len(text)
}

// hanNumeral is what is read of a numeral: whole multiples of 万 and 亿, what the next
// of them multiplies, and the digits after that. They count units, but a digit right
// after a scale counts tenths of it: 三万五 is 35000, 三万零五 is 30005.
type hanNumeral struct {
	total, section, digits float64
	unit, next             float64 // what the last digit counts, and what another would
}

// read adds a character; not ok: it belongs to no numeral.
func (n *hanNumeral) read(r rune) (ok bool) {
	digit, isDigit := hanDigits[r]
	scale := scales[string(r)]
	switch {
	case isDigit:
		n.digits, n.unit, n.next = 10*n.digits+digit, n.next, 1
		return true
	case scale >= 1e4 && n.total >= scale: // 一亿五千万
		n.total, n.section = n.total+(n.section+n.digits)*scale, 0
	case scale >= 1e4:
		n.total, n.section = (n.total+n.section+n.digits)*scale, 0
	case scale > 0:
		n.section += max(n.digits, 1) * scale
	default:
		return false
	}
	n.digits, n.next = 0, max(scale/10, 1)
	return true
}

func (n *hanNumeral) value() float64 { return n.total + n.section + n.digits*n.unit }
