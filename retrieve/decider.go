package retrieve

import "sluice/filter"

// decider decides documents of one principal, one after the other, each by the
// policies then in force.
type decider struct {
	serving   *Serving
	view      *filter.View
	principal filter.Principal

	policies *filter.Policies
	judge    *filter.Judge // by policies; nil before the first document
}

func (e *Engine) decider(at *snapshot, p filter.Principal) *decider {
	return &decider{serving: e.serving, view: at.view, principal: p}
}

func (d *decider) admits(a filter.Access) (bool, error) {
	if policies := d.serving.policiesInForce(); d.judge == nil || policies != d.policies {
		renewed, err := d.view.Judge(policies, d.principal)
		if err != nil {
			return false, err
		}
		d.policies, d.judge = policies, renewed
	}
	return d.judge.Admits(a), nil
}
