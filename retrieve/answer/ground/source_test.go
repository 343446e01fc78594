package ground

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/text"
)

func language(t testing.TB, analyzer string) *Language {
	a, err := text.New(analyzer)
	require.NoError(t, err)
	return NewLanguage(a.Terms, analyzer == "german")
}

const policy = `The meal allowance is 60 EUR per day for travel inside the EU and 75 USD per day for travel inside the US. Alcohol is not reimbursed.
Claims submitted later than 90 days are rejected. The rule is in force since 12 March 2026; the office opens at 08:00 and closes at 5 pm.
The Enterprise plan allows 3,000 requests per minute and costs €2,100 a month; single sign-on is part of it. Data never leaves the region.
The first review is in November. Ask in #travel-help or at travel@example.org. Parents get two fully paid weeks; managers may add one day.
Uptime was 99.95 percent. Zoë Müller signs. The limit is 1.5 GB, one and a half hours or twenty-five files.
Economy is the default and business class is not allowed.`

// Each sentence is as its source says, in other words.
func TestWhatTheSourceSays(t *testing.T) {
	s := NewSource([]Section{{"Travel Policy > Meals", policy}}, language(t, "english"))
	for _, sentence := range []string{
		"The meal allowance is 60 EUR per day inside the EU.",
		"Inside the European Union the meal allowance is 60 € a day.",
		"The allowance for travel inside the United States is seventy-five dollars per day.",
		"Alcohol isn't reimbursed.",
		"The meal allowance is 75 USD/day for travel inside the US.",
		"The daily meal allowance is 60 EUR.",
		"Claims later than ninety days are rejected.",
		"Claims later than 90 days are not reimbursed.",
		"The rule is in force since March 12, 2026.",
		"The rule is in force since 2026-03-12.",
		"The rule is in force since the 12th of March 2026.",
		"The rule is in force since 12/03/2026.",
		"The rule is in force since March 2026.",
		"The office opens at 8:00 am and closes at 17:00.",
		"The Enterprise plan allows 3000 requests a minute.",
		"The Enterprise plan allows 3 thousand requests per minute.",
		"The Enterprise plan allows ３，０００ requests per minute.",
		"The Enterprise plan allows ٣٠٠٠ requests per minute.",
		"The Enterprise plan costs 2100 EUR per month and has SSO.",
		"Data does not leave the region.",
		"The 1st review is in November.",
		"Ask at #travel-help.",
		"Parents get 2 weeks fully paid.",
		"The meal allowance is no more than 60 EUR per day.",
		"Uptime was 99.95 %.",
		"Uptime was 99,95%.",
		"The paper signs Zoe Muller.",
		"The limit is 1.5 GB, 1.5 hours or 25 files.",
		"One of the managers may add 1 day.",
	} {
		require.Empty(t, s.Faults(sentence, Context{}), "%s", sentence)
	}
}

// Each sentence says one thing that its source does not.
func TestWhatTheSourceDoesNotSay(t *testing.T) {
	s := NewSource([]Section{{"Travel Policy > Meals", policy}}, language(t, "english"))
	for sentence, want := range map[string]Fault{
		"The meal allowance is 95 EUR per day inside the EU.":                  Number,
		"The meal allowance is 6 EUR per day inside the EU.":                   Number,
		"The meal allowance is 60 USD per day inside the EU.":                  Unit,
		"The meal allowance is 60 EUR per week inside the EU.":                 Unit,
		"The meal allowance is sixty GBP per day.":                             Unit,
		"Alcohol is reimbursed.":                                               Negation,
		"The meal allowance is not for travel inside the EU.":                  Negation,
		"Economy is not the default.":                                          Negation,
		"Business class is allowed.":                                           Negation,
		"Data leaves the region.":                                              Negation,
		"The rule is in force since 13 March 2026.":                            Date,
		"The rule is in force since March 12, 2025.":                           Date,
		"The rule is in force since 2026-04-12.":                               Date,
		"The first review is in December.":                                     Date,
		"The second review is in November.":                                    Number,
		"The office opens at 9:00.":                                            Date,
		"The office closes at 5 am.":                                           Date,
		"The plan Standard allows 3,000 requests per minute.":                  Name,
		"The Enterprise plan allows 3,000 requests per minute by OIDC.":        Name,
		"The Enterprise plan allows 30 thousand requests per minute.":          Number,
		"The Enterprise plan allows 3 million requests per minute.":            Number,
		"The Enterprise plan costs €2,100 a day.":                              Unit,
		"Ask in #travel-desk.":                                                 Name,
		"Ask at travel@example.com for travel help.":                           Name,
		"The travel policy is at https://evil.example/meal for the allowance.": Name,
		"The paper signs Zoe Meier.":                                           Name,
		"Dogs are welcome wherever colleagues agree.":                          Words,
		"This is never so.":                                                    Words,
		"PWNED":                                                                Name,
		"":                                                                     Words,
		"The limit is 2.5 hours.":                                              Number,
		"The limit is twenty-six files.":                                       Number,
		"Uptime was 9995 percent.":                                             Number,
	} {
		require.Contains(t, s.Faults(sentence, Context{}), want, "%s", sentence)
	}
}

func TestOtherLanguages(t *testing.T) {
	german := NewSource([]Section{{"", "Der Urlaub beträgt 30 Tage im Jahr und verfällt nicht. Er kostet 1.250 EUR und 99,95 Prozent."}}, language(t, "german"))
	require.Empty(t, german.Faults("Urlaub verfällt nicht, er beträgt 30 Tage.", Context{}))
	require.Empty(t, german.Faults("Der Urlaub kostet 1250 EUR.", Context{}))
	require.Empty(t, german.Faults("Das Angebot kostet genau 1250 EUR.", Context{}))
	require.Contains(t, german.Faults("Urlaub verfällt.", Context{}), Negation)
	require.Contains(t, german.Faults("Der Urlaub beträgt 31 Tage.", Context{}), Number)
	require.Empty(t, Names("Wie viele Tage beträgt der Urlaub?", german.language))
	cjk := NewSource([]Section{{"", "年次有給休暇は２０日です。"}}, language(t, "cjk"))
	require.Empty(t, cjk.Faults("年次有給休暇は20日です。", Context{}))
	require.Contains(t, cjk.Faults("年次有給休暇は30日です。", Context{}), Number)
}

func TestChinese(t *testing.T) {
	for run, want := range map[string][]string{
		"员工每年享有十五天带薪年假": {"员工每年享有", "15", "天", "带薪年假"},
		"费用为一百零五万欧元":    {"费用为", "1050000", "欧元"},
		"二〇二六年百分之二十五":   {"2026", "年", "25", "%"},
		"酒类不予报销":        {"酒类", "不", "予报销"},
		"不超过两个月非常重要":    {"不超过", "2", "个月", "非常重要"},
		"一个员工统一管理":      {"一个员工统一管理"},
		"百分之":           {"百分之"},
	} {
		require.Equal(t, want, han(run, false), run)
	}
	require.Equal(t, []string{"天", "带薪"}, han("天带薪", true))
	require.Equal(t, []string{"天带薪"}, han("天带薪", false))
	require.Equal(t, []string{"万", "元", "年费"}, han("万元年费", true))
	require.Equal(t, []string{"数万元"}, han("数万元", false))
	require.Equal(t, []string{"员工天"}, han("员工天", true), "no unit of that number")
	require.Equal(t, []string{"千", "元", "不", "计"}, han("千元不计", true))
	require.Equal(t, []string{"百", "万", "元"}, han("百万元", true))
	require.Equal(t, []string{"千克", "天数"}, han("千克天数", true), "a unit ends a number")
	require.Equal(t, []string{"百分点"}, han("百分点", true))
	s := NewSource([]Section{{"", "罚款为3万元。会员有1.5亿人。"}}, language(t, "cjk"))
	for _, sentence := range []string{"罚款为三万元。", "罚款为30,000元。", "罚款为30千元。", "会员有一亿五千万人。"} {
		require.Empty(t, s.Faults(sentence, Context{}), sentence)
	}
	require.Contains(t, s.Faults("罚款为3元。", Context{}), Number)
	require.Contains(t, s.Faults("罚款为三百万元。", Context{}), Number)
}

// 〇 to 二千零二十六, the short forms of speech, and great scales over others.
func TestChineseNumerals(t *testing.T) {
	for numeral, want := range map[string]float64{
		"〇": 0, "十": 10, "十二": 12, "二十": 20, "一百零五": 105, "一百五十": 150, "一百五": 150, "百五": 150, "二〇二六": 2026, "二千零二十六": 2026,
		"三千二": 3200, "三万五": 35000, "三万零五": 30005, "三万五千": 35000, "三万五千零二": 35002, "一百二十三万": 1230000, "一百万零五": 1000005,
		"两亿": 2e8, "一亿五": 1.5e8, "一亿五千万": 1.5e8, "三万亿": 3e12, "十二亿零三百万": 1203000000,
	} {
		value, bytes := hanNumber(numeral + "的")
		require.Equal(t, want, value, numeral)
		require.Equal(t, len(numeral), bytes, numeral)
	}
	for _, none := range []string{"", "万", "亿元", "的", "a"} {
		_, bytes := hanNumber(none)
		require.Zero(t, bytes, none)
	}
}

// Every number to 999,999, as it is written in full, is read as it is.
func TestChineseNumbersInFull(t *testing.T) {
	for n := 1; n < 1e6; n += 7 {
		value, _ := hanNumber(inFull(n))
		require.Equal(t, float64(n), value, inFull(n))
	}
}

// inFull writes a number in Chinese: each digit with its scale, and one 零 for zeros
// between digits.
func inFull(n int) string {
	if n >= 1e4 {
		rest := ""
		if n%1e4 > 0 {
			rest = inFull(n % 1e4)
			if n%1e4 < 1000 {
				rest = "零" + rest
			}
		}
		return inFull(n/1e4) + "万" + rest
	}
	digits, scale, zero := "", 1000, false
	for _, name := range []string{"千", "百", "十", ""} {
		if d := n / scale % 10; d > 0 {
			if zero {
				digits += "零"
			}
			digits, zero = digits+string([]rune("零一二三四五六七八九")[d])+name, false
		} else {
			zero = digits != ""
		}
		scale /= 10
	}
	return digits
}

// A long run of numerals is gone through once.
func TestManyChineseNumerals(t *testing.T) {
	run := strings.Repeat("一", 1<<20)
	require.Equal(t, []string{run}, han(run, false))
	require.Equal(t, []string{"一", "5", "%"}, han("一百分之五", false))
}

// Titles hold for every sentence, and are kept once.
func TestTitlesAreKeptOnce(t *testing.T) {
	var titles strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&titles, "w%d %d ", i, i)
	}
	l := language(t, "english")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := NewSource([]Section{{titles.String(), strings.Repeat("\n- xyz", 1500)}}, l)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), "it took 692 MB with the titles in each sentence")
	require.Empty(t, s.Faults("xyz w7 1400", Context{}))
	require.NotEmpty(t, s.Faults("xyz w7 1600", Context{}))
}

// What is denied of one alternative is not denied of the other, but of both where
// the negator stands before them.
func TestAlternatives(t *testing.T) {
	l := language(t, "english")
	either := NewSource([]Section{{"", "Guests may either not smoke or leave the house."}}, l)
	require.Empty(t, either.Faults("Guests may leave the house.", Context{}))
	require.Contains(t, either.Faults("Guests may smoke in the house.", Context{}), Negation)
	for _, both := range []string{"Guests may not smoke or leave the house.", "Guests may not either smoke or leave the house."} {
		neither := NewSource([]Section{{"", both}}, l)
		require.Contains(t, neither.Faults("Guests may leave the house.", Context{}), Negation, both)
		require.Contains(t, neither.Faults("Guests may smoke in the house.", Context{}), Negation, both)
	}
}

// A word of the titles counts once where a line has it, too.
func TestTitlesCountOnce(t *testing.T) {
	s := NewSource([]Section{{"Lobby", "The lobby is open."}}, language(t, "english"))
	require.Equal(t, []Fault{Words}, s.Faults("The lobby has red chairs.", Context{}))
}

// Numbers of more digits than a float64 tells apart are not mistaken for others.
func TestLongNumbers(t *testing.T) {
	for _, number := range []string{"123456789012345678", "4999999999999999", "12,345,678,901,234,567"} {
		s := NewSource([]Section{{"", "The account is " + number + " today."}}, language(t, "english"))
		require.Empty(t, s.Faults("The account is "+number+" today.", Context{}))
		require.Equal(t, []Fault{Number}, s.Faults("The account is "+number[:len(number)-1]+"0 today.", Context{}))
	}
}

func TestPartsOfAText(t *testing.T) {
	l := language(t, "english")
	require.Equal(t, []Part{{"Alcohol is never reimbursed.", false}, {"Late claims are rejected.", false}}, l.Parts("Alcohol is never reimbursed. Late claims are rejected."))
	require.Equal(t, []Part{{"Alcohol is never reimbursed", false}, {"late claims are rejected.", true}}, l.Parts("Alcohol is never reimbursed, and late claims are rejected."))
	require.Empty(t, l.Parts("Alcohol is never reimbursed."))
	require.Empty(t, l.Parts("Alcohol is reimbursed, never."), "too short to say something")
}

// What the question has is no evidence for what is answered, and what is rare
// counts for more than what every source has.
func TestContext(t *testing.T) {
	l := language(t, "english")
	s := NewSource([]Section{{"", "Visitors wear a badge and wait in the lobby."}}, l)
	others := []*Source{s, NewSource([]Section{{"", "Visitors of the lobby wear shoes, and wait for visitors."}}, l)}
	sentence := "Visitors wear a hat, wait in the lobby."
	require.Empty(t, s.Faults(sentence, Context{}))
	require.Equal(t, []Fault{Words}, s.Faults(sentence, NewContext("Do visitors wear something, or wait in the lobby?", others, l)))
	require.Empty(t, s.Faults("Visitors wait in the lobby.", NewContext("Do visitors wait in the lobby?", others, l)), "it adds nothing, and is so")
	sentence = "Visitors in hats sit in the lobby and wait."
	require.Empty(t, s.Faults(sentence, Context{}))
	require.Equal(t, []Fault{Words}, s.Faults(sentence, NewContext("", others, l)))
	require.Equal(t, []Fault{Question}, s.Faults("Do visitors wear a badge?", Context{}))
	require.Equal(t, []Fault{Question}, s.Faults("Visitors wear a badge. (“Do they wait in the lobby？”)", Context{}))
}

func TestNamesOfAQuestion(t *testing.T) {
	for question, want := range map[string][]string{
		"When is the Atlas cutover scheduled?":          {"Atlas"},
		"What counts as a SEV1?":                        {"SEV1"},
		"What does SSO cost in Germany?":                {"SSO", "Germany"},
		"Do I get time off after 3am in March?":         nil,
		"How much do Staff Engineers get?":              {"Staff Engineers"},
		"What is the salary band of senior engineers?":  nil,
		"Berlin? How many EUR, and what do I'd get?":    nil,
		"WHAT DOES SSO COST IN GERMANY?":                nil,
		"Is 2FA required, and a YubiKey, for iOS apps?": {"2FA", "YubiKey", "iOS"},
	} {
		require.Equal(t, want, Names(question, language(t, "english")), "%s", question)
	}
	require.Equal(t, []string{"Staff", "directors"}, Ranks("How much do Staff engineers get, and directors?"))
	s := NewSource([]Section{{"Travel Policy > Meals", policy}}, language(t, "english"))
	for name, want := range map[string]bool{"Enterprise": true, "SSO": true, "MEAL": true, "EU": true, "zoe": true, "Atlas": false, "SEV1": false, "claim": true, "OIDC": false} {
		require.Equal(t, want, s.Mentions(name), name)
	}
}

// What a text says has no fault against the text, whatever follows it.
func FuzzFaults(f *testing.F) {
	l := language(f, "english")
	for _, line := range strings.Split(policy, ". ") {
		f.Add(line, "Other 7 words, May 2020.")
	}
	f.Add("ﬁrst ½ 10.30.2020 99/99/9999 1.2.3.4 '''5,,,5", "İ\u200b\xff")
	f.Fuzz(func(t *testing.T, text, more string) {
		if len(text)+len(more) > MaxSource/4 {
			return
		}
		s := NewSource([]Section{{"", text + "\n\n" + more}}, l)
		for _, sentence := range sentences(normal(text)) {
			if len(l.read(sentence).terms) == 0 || asks(sentence) {
				continue
			}
			for _, fault := range s.Faults(sentence, Context{}) {
				t.Fatalf("%q of %q: %s", sentence, text, fault)
			}
		}
		Names(text, l)
		Capitals(text)
	})
}
