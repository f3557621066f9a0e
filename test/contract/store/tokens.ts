/** Tokens of the HTTP API. */
import assert from 'node:assert/strict'
import { CommandInvalid } from '../../../src/core/errors.ts'
import type { AccessRole, NewToken } from '../../../src/stores/contract/tokens.ts'
import type { Cases } from './bench.ts'

function token(id: string, more: Partial<NewToken> = {}): NewToken {
  const hash = id.charCodeAt(0).toString(16).repeat(32)
  return { id, name: 'ann', roles: ['read', 'work'], hash, createdBy: 'ben', ...more }
}

export const tokenCases: Cases = {
  'a token is found by its id, with its hash and who made it': async ({ store }) => {
    const expiresAt = store.now() + 1000
    const made = await store.tokens.add(token('aaaaaaaa', { expiresAt }))
    const { hash, ...info } = token('aaaaaaaa', { expiresAt })
    assert.deepEqual(made, { ...info, createdAt: store.now() })
    assert.deepEqual(await store.tokens.find('aaaaaaaa'), { ...made, hash })
    assert.equal(await store.tokens.find('bbbbbbbb'), undefined)
  },

  'tokens are listed without their hashes, the newest first': async (bench) => {
    const { store } = bench
    await store.tokens.add(token('aaaaaaaa'))
    await bench.advance(5)
    await store.tokens.add(token('bbbbbbbb', { name: "o'hara\u202e" }))
    const listed = await store.tokens.list(10)
    assert.deepEqual(
      listed.map(({ id, name }) => [id, name]),
      [
        ['bbbbbbbb', "o'hara\u202e"],
        ['aaaaaaaa', 'ann'],
      ],
    )
    assert.ok(listed.every((one) => !('hash' in one)))
    assert.equal((await store.tokens.list(1)).length, 1)
  },

  'a token is revoked once, and says by whom': async (bench) => {
    const { store } = bench
    await store.tokens.add(token('aaaaaaaa'))
    await bench.advance(7)
    assert.equal(await store.tokens.revoke('aaaaaaaa', 'cas'), 'revoked')
    const revokedAt = store.now()
    await bench.advance(7)
    assert.equal(await store.tokens.revoke('aaaaaaaa', 'dan'), 'same')
    assert.equal(await store.tokens.revoke('bbbbbbbb', 'dan'), undefined)
    const [only] = await store.tokens.list(10)
    assert.deepEqual([only?.revokedAt, only?.revokedBy], [revokedAt, 'cas'])
  },

  'a second token with the same id is refused, unless it is the same one': async ({ store }) => {
    const first = await store.tokens.add(token('aaaaaaaa'))
    assert.deepEqual(await store.tokens.add(token('aaaaaaaa')), first)
    const other = token('aaaaaaaa', { hash: 'f'.repeat(64) })
    await assert.rejects(() => store.tokens.add(other), CommandInvalid)
  },

  'fields of tokens that are not valid are refused': async ({ store }) => {
    const wrong: Partial<NewToken>[] = [
      { id: 'short' },
      { id: "a' OR 1=1" },
      { name: '' },
      { name: 'a\nb' },
      { name: 'x'.repeat(256) },
      { roles: [] },
      { roles: ['root' as AccessRole] },
      { hash: 'secret' },
      { createdBy: '' },
      { expiresAt: -1 },
    ]
    for (const fields of wrong) {
      await assert.rejects(() => store.tokens.add(token('aaaaaaaa', fields)), CommandInvalid)
    }
    await assert.rejects(() => store.tokens.revoke('aaaaaaaa', ''), CommandInvalid)
    await assert.rejects(() => store.tokens.list(-1), CommandInvalid)
    assert.deepEqual(await store.tokens.list(10), [])
  },
}
