package server

import (
	"cmp"

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
	wanted, err := settingsOf(settings)
	if err != nil {
		return err
	}
	var c store.Collection
	var created bool
	err = q.audited(q.ctx, audit.Record{Action: audit.CreateCollection, Collection: name}, func() (_ uint64, err error) {
		if c, created, err = s.backend.CreateCollection(q.ctx, q.principal(), name, wanted); err != nil {
			return 0, err
		}
		return s.backend.Epoch(), nil
	})
	if err != nil {
		return err
	}
	return q.reply(createdOr200(created), s.collectionOf(c))
}

// settingsOf fills in the defaults: codes where there are token vectors, of 1
// bit where the model makes them, of 8 where documents bring them.
func settingsOf(s client.CollectionSettings) (store.Settings, error) {
	settings := store.Settings{Analyzer: s.Analyzer, Chunker: s.Chunker}
	bits, tokens := 1, true
	if own := s.OwnVectors; own != nil {
		if *own == (client.OwnVectors{}) {
			return settings, badRequest("own_vectors: needs dimensions, multi_dimensions or both")
		}
		settings.Own = store.Own{Dense: own.Dimensions, Multi: own.MultiDimensions}
		bits, tokens = 8, own.MultiDimensions > 0
	}
	switch {
	case s.TokenCodes != nil && *s.TokenCodes != tokens && s.OwnVectors != nil:
		return settings, badRequest("token_codes: with own_vectors they are kept where there are multi_dimensions; leave it out")
	case s.CodeBits != 0 && (!tokens || s.TokenCodes != nil && !*s.TokenCodes):
		return settings, badRequest("code_bits: the collection keeps no token codes; leave it out")
	case tokens && (s.TokenCodes == nil || *s.TokenCodes):
		settings.CodeBits = cmp.Or(s.CodeBits, bits)
	}
	return settings, settings.Validate()
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
	return q.reply(fasthttp.StatusOK, s.collectionOf(c))
}

func (s *Server) listCollections(q *request) error {
	all, err := s.backend.Collections(q.ctx, q.principal().Tenant)
	if err != nil {
		return err
	}
	list := client.Collections{Collections: make([]client.Collection, len(all))}
	for i, c := range all {
		list.Collections[i] = s.collectionOf(c)
	}
	return q.reply(fasthttp.StatusOK, list)
}

func createdOr200(created bool) int {
	if created {
		return fasthttp.StatusCreated
	}
	return fasthttp.StatusOK
}

func (s *Server) collectionOf(c store.Collection) client.Collection {
	info := s.backend.Info()
	collection := client.Collection{
		Name:       c.Name,
		Analyzer:   c.Settings.Analyzer,
		TokenCodes: c.Settings.CodeBits > 0,
		CodeBits:   c.Settings.CodeBits,
		Chunker:    c.Serving().Chunker,
		Model:      info.Model,
		Dimensions: c.Settings.Dimensions(info.Dimensions),
		Created:    c.Created,
	}
	if c.Settings.Brings() {
		collection.Model = ""
		collection.OwnVectors = &client.OwnVectors{Dimensions: c.Settings.Own.Dense, MultiDimensions: c.Settings.Own.Multi}
	}
	return collection
}
