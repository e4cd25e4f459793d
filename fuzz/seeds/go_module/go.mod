module example.com/a

go 1.22

require (
	example.com/b v1.0.0 // indirect
)
