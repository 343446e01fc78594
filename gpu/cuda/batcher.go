package cuda

// batcher takes questions while rows are on a device, those that wait together.
type batcher struct {
	asked chan *question
	over  chan struct{}
}

// mostQuestions are asked at once: the queries of one block of the kernel.
const mostQuestions = 64

// gather is a question and those that wait behind it.
func (b *batcher) gather(first *question) []*question {
	questions := []*question{first}
	for len(questions) < mostQuestions {
		select {
		case q := <-b.asked:
			questions = append(questions, q)
			continue
		default:
		}
		break
	}
	return questions
}
