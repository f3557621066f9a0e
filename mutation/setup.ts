// A mutant is dead once a property fails: the counterexample is not read, so it is not made
// smaller. One seed for all, so that a mutant that is killed today is killed tomorrow.
import fc from 'fast-check'

fc.configureGlobal({ seed: 1, endOnFailure: true })
