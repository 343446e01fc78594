package main

import (
	"fmt"

	"sluice/server/identity"
)

type keyCommand struct{}

func (keyCommand) Run() error {
	key, hash := identity.NewKey()
	fmt.Printf("key:  %s\nhash: %s\n\nGive the key to its holder; put the hash into auth.api_keys.\n", key, hash)
	return nil
}
