package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/server/audit"
	"sluice/store"
)

func (s *Server) putCollection(q *request) error {
	name, err := q.collection()
	if err != nil {
		return err
	}
	var settings client.CollectionSettings
	if err := q.readJSON(&settings); err != nil {
		return err
	}
	var c store.Collection
	var created bool
	err = q.audited(q.ctx, audit.Record{Action: audit.CreateCollection, Collection: name}, func() (_ uint64, err error) {
		if c, created, err = s.backend.CreateCollection(q.ctx, q.principal(), name, settingsOf(settings)); err != nil {
			return 0, err
		}
		return s.backend.Epoch(), nil
	})
	if err != nil {
		return err
	}
	q.timings(nil)
	return q.reply(createdOr200(created), s.collectionOf(c))
}

func settingsOf(s client.CollectionSettings) store.Settings {
	return store.Settings{Analyzer: s.Analyzer, TokenCodes: s.TokenCodes == nil || *s.TokenCodes}
}

func (s *Server) getCollection(q *request) error {
	name, err := q.collection()
	if err != nil {
		return err
	}
	c, err := s.backend.Collection(q.ctx, q.principal(), name)
	if err != nil {
		return err
	}
	q.timings(nil)
	return q.reply(fasthttp.StatusOK, s.collectionOf(c))
}

func createdOr200(created bool) int {
	if created {
		return fasthttp.StatusCreated
	}
	return fasthttp.StatusOK
}

func (s *Server) collectionOf(c store.Collection) client.Collection {
	info := s.backend.Info()
	return client.Collection{
		Name:       c.Name,
		Analyzer:   c.Settings.Analyzer,
		TokenCodes: c.Settings.TokenCodes,
		Model:      info.Model,
		Dimensions: info.Dimensions,
		Created:    c.Created,
	}
}
