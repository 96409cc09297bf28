// Wait-for is a plugin of Pintle: an object is ready once another object has a condition.
package main

// Nothing runs on its own: the host calls the exports in app.go.
func main() {}
