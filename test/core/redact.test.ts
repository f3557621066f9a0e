// Passwords in texts that people may read.
import { expect, it } from 'vitest'
import { withoutSecrets } from '../../src/core/redact.ts'

it.each([
  ['postgres://ann:s3cret@db/app', 'postgres://ann:***@db/app'],
  ['postgres://ann:s3@cret@db/app', 'postgres://ann:***@db/app'],
  ['no password=s3cret, sorry', 'no password=***, sorry'],
  ['sqlite:./jobs.db', 'sqlite:./jobs.db'],
])('in %s no password is left', (text, shown) => {
  expect(withoutSecrets(text)).toBe(shown)
})
