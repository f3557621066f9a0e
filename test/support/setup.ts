// Runs before each test file.
import fc from 'fast-check'
import { testSeed } from './seed.ts'

fc.configureGlobal({ seed: testSeed })
