package ground

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

var ones = map[string]float64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
	"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "dozen": 12, "half": .5,
}

var scales = map[string]float64{"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "十": 10, "百": 100, "千": 1000, "万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8}

var ordinals = map[string]float64{
	"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
}

// units maps what a unit is called to its one name.
var units = unitNames(map[string]string{
	"second": "seconds sec secs s 秒", "minute": "minutes min mins 分钟 分鐘", "hour": "hours hourly hr hrs h 小时 小時 个小时 個小時", "day": "days daily 天 日", "night": "nights nightly",
	"week": "weeks weekly 周 週 星期 个星期 個星期", "month": "months monthly 月 个月 個月", "quarter": "quarters quarterly", "year": "years yearly annual annually yr yrs 年", "ms": "millisecond milliseconds",
	"percent": "% pct percentage", "eur": "€ euro euros 欧元 歐元", "usd": "$ dollar dollars 美元", "gbp": "£ pound pounds 英镑", "jpy": "¥ yen 日元", "chf": "franc francs", "cny": "rmb yuan 元",
	"kg": "kilogram kilograms 千克 公斤", "g": "gram grams", "km": "kilometre kilometres kilometer kilometers 千米 公里", "m": "metre metres meter meters", "cm": "", "mm": "", "mile": "miles",
	"kb": "kilobyte kilobytes", "mb": "megabyte megabytes", "gb": "gigabyte gigabytes", "tb": "terabyte terabytes", "kib": "", "mib": "", "gib": "",
	"hz": "", "khz": "", "mhz": "", "ghz": "", "w": "watt watts", "kw": "kilowatt kilowatts 千瓦", "kwh": "", "v": "volt volts", "°": "degree degrees", "l": "litre litres liter liters",
})

var currencies = []string{"eur", "usd", "gbp", "jpy", "chf", "cny"}

// price is a question for an amount of money.
var price = regexp.MustCompile(`(?i)\b(?:what|how much)\b.*\b(?:costs?|prices?|salary|salaries|fees?|budgets?|wages?|stipends?|allowances?)\b`)

// AsksMoney reports a question, in English, that an amount of money answers.
func AsksMoney(question string) bool { return price.MatchString(bounded(question)) }

func unitNames(names map[string]string) map[string]string {
	all := map[string]string{}
	for unit, others := range names {
		all[unit] = unit
		for _, other := range strings.Fields(others) {
			all[other] = unit
		}
	}
	return all
}

// unitReach is how many words after a number its unit may stand: "two paid
// volunteer days".
const unitReach = 3

// quantity is a number with what it measures. Another reading of its digits is
// other; equal if there is none.
type quantity struct {
	value, other string
	measure
	bare bool // the word "one" without a unit: more often a pronoun than a number
}

// measure is the unit that stands by a number, and what it is per; "" for none.
type measure struct{ unit, per string }

// fits: where both say something, they say the same.
func (m measure) fits(other measure) bool {
	return (m.unit == "" || other.unit == "" || m.unit == other.unit) && (m.per == "" || other.per == "" || m.per == other.per)
}

// quantities reads the numbers of a text, in digits or in words, and the units
// that are named anywhere in it.
func quantities(text []word) (all []quantity, named map[string]bool) {
	named = map[string]bool{}
	for i := 0; i < len(text); {
		q, n := quantityAt(text, i)
		if n > 0 {
			all = append(all, q)
			i += n
			continue
		}
		if unit, known := units[text[i].folded]; known && len(text[i].folded) > 1 || strings.ContainsAny(text[i].text, signs) {
			named[unit] = true
		}
		i++
	}
	for _, q := range all {
		named[q.unit], named[q.per] = true, true
	}
	delete(named, "")
	return all, named
}

// quantityAt reads the number that begins at a word, of n words; 0: there is none.
func quantityAt(text []word, i int) (q quantity, n int) {
	if value, ok := ordinals[text[i].folded]; ok && !(text[i].opens && follows(text, i)) && !unitOf(text, i) {
		return quantity{value: "#" + format(value), other: "#" + format(value)}, 1
	}
	value, other, unit, n := numeral(text, i)
	if n == 0 {
		return q, 0
	}
	q = quantity{value: value, other: other, measure: measure{unit: unit}}
	if q.unit == "" {
		q.measure = measureBy(text, i, i+n)
	}
	q.bare = q.unit == "" && n == 1 && text[i].folded == "one"
	return q, n
}

// follows reports "First, …": an enumeration, no number.
func follows(text []word, i int) bool { return i+1 < len(text) && text[i+1].after }

// unitOf reports that "second" is what a number counts.
func unitOf(text []word, i int) bool {
	if text[i].folded != "second" || i == 0 || text[i].after {
		return false
	}
	_, word := ones[text[i-1].folded]
	return word || text[i-1].number()
}

func numeral(text []word, i int) (value, other, unit string, n int) {
	w := text[i]
	if !w.number() {
		v, n := spelled(text, i)
		return format(v), format(v), "", n
	}
	digits := strings.TrimRightFunc(w.folded, func(r rune) bool { return r < '0' || r > '9' })
	suffix := w.folded[len(digits):]
	if suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th" {
		return "#" + digits, "#" + digits, "", 1
	}
	a, b, ok := parse(digits)
	if !ok {
		return w.folded, w.folded, "", 1 // a version, an address: as it is written
	}
	n = 1
	if scale, known := scales[suffix]; known {
		return format(a * scale), format(b * scale), "", n
	}
	for i+n < len(text) && !text[i+n].after && scales[text[i+n].folded] > 0 {
		a, b, n = a*scales[text[i+n].folded], b*scales[text[i+n].folded], n+1
	}
	return format(a), format(b), units[suffix], n
}

// exactDigits are those of numbers that are compared by value: a float64 makes two
// that differ in more of them one, so that these are compared as they are written.
const exactDigits = 15

// parse reads digits with separators in the ways there are: a comma or an
// apostrophe before three digits groups thousands, a point is that of decimals.
// One before three digits may be either. Not ok: more than exactDigits.
func parse(digits string) (value, other float64, ok bool) {
	plain := strings.ReplaceAll(digits, "'", "")
	comma, point := strings.LastIndexByte(plain, ','), strings.LastIndexByte(plain, '.')
	switch {
	case comma > point && point >= 0, comma >= 0 && point < 0 && len(plain)-comma != 4: // 1.234,5 and 99,95
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, ".", ""), ",", ".")
	default:
		plain = strings.ReplaceAll(plain, ",", "")
	}
	if strings.Count(plain, ".") > 1 {
		if plain = strings.ReplaceAll(plain, ".", ""); len(digits)-point != 4 {
			return 0, 0, false
		}
	}
	value, err := strconv.ParseFloat(plain, 64)
	other = value
	if strings.Count(digits, ".") == 1 && comma < 0 && len(digits)-point == 4 && point <= 3 && digits[0] != '0' {
		other = math.Round(value * 1000)
	}
	return value, other, err == nil && len(plain) <= exactDigits && !strings.Contains(digits, ":")
}

// spelled reads number words: "two hundred and fifty", "one and a half".
func spelled(text []word, i int) (value float64, n int) {
	total, part := 0.0, 0.0
	for at := i; at < len(text); at++ {
		if at > i && text[at].after {
			break
		}
		folded := text[at].folded
		v, isOne := ones[folded]
		scale, isScale := scales[folded]
		switch {
		case isOne && (n == 0 || fits(part, v)):
			part += v
		case isScale && folded != "k" && folded != "bn" && (n > 0 || article(text, at)):
			if part = max(part, 1) * scale; scale > 100 {
				total, part = total+part, 0
			}
		case (folded == "and" || folded == "a") && n > 0 && continues(text, at, part):
			continue
		default:
			return total + part, n
		}
		n = at - i + 1
	}
	return total + part, n
}

// fits: "twenty five", "hundred five", "one (and a) half", but not "three five".
func fits(part, v float64) bool {
	return v == .5 && part == math.Trunc(part) || v < 10 && v >= 1 && math.Mod(part, 10) == 0 && part > 0 || v < 100 && v >= 10 && math.Mod(part, 100) == 0
}

func article(text []word, at int) bool {
	return at > 0 && (text[at-1].folded == "a" || text[at-1].folded == "an")
}

// continues: "and" within a number.
func continues(text []word, at int, part float64) bool {
	next := at + 1
	if next < len(text) && text[at].folded == "and" && text[next].folded == "a" {
		next++
	}
	if next >= len(text) {
		return false
	}
	v, one := ones[text[next].folded]
	return one && (v == .5 || part >= 100 && fits(part, v))
}

func format(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// measureBy is that of a number in words [from, to): the first unit after it,
// or a currency right before it.
func measureBy(text []word, from, to int) measure {
	for i := to; i < len(text) && i < to+unitReach && !text[i].after && !text[i].number(); i++ {
		if unit, known := units[text[i].folded]; known && (i == to || !rates[text[i-1].folded]) {
			return measure{unit, rateAt(text, i+1)}
		} else if known {
			return measure{before(text, from), unit}
		}
		if _, number := ones[text[i].folded]; number {
			break
		}
	}
	return measure{unit: before(text, from)}
}

var rates = set("per a an each every")

// rateAt is the unit after "per".
func rateAt(text []word, i int) string {
	if i < len(text) && rates[text[i].folded] && !text[i].after {
		i++
	}
	if i < len(text) && !text[i].after {
		return units[text[i].folded]
	}
	return ""
}

// before is the currency right before a number.
func before(text []word, from int) string {
	if from == 0 || text[from].after {
		return ""
	}
	if unit := units[text[from-1].folded]; len(unit) == 3 || strings.ContainsAny(text[from-1].text, signs) {
		return unit
	}
	return ""
}
