import { describe, expect, it } from 'vitest'
import { hostsOf } from './hosts.ts'

const UNUSABLE = { code: 'E_STORE_UNUSABLE' }

/** What opening would refuse the text with. */
function refusalOf(text: string): unknown {
  try {
    return hostsOf(text)
  } catch (error) {
    return error
  }
}

describe('a connection string', () => {
  it('with several hosts is one for each of them, and wants a server that takes writes', () => {
    const { urls, mustWrite } = hostsOf('postgres://u:p%2C@a:1,b,[::1]:3/db?sslmode=require')
    expect(urls).toEqual([
      'postgres://u:p%2C@a:1/db?sslmode=require',
      'postgres://u:p%2C@b/db?sslmode=require',
      'postgres://u:p%2C@[::1]:3/db?sslmode=require',
    ])
    expect(mustWrite).toBe(true)
  })

  it('with one host is left as it is', () => {
    const texts = [
      'postgres://a/db',
      'postgresql://u:x,y@a:5432/db?application_name=me',
      'postgres://%2Fvar%2Frun/db',
      'postgres:///db?host=/var/run',
      'socket:/var/run?db=x',
    ]
    for (const text of texts)
      expect(hostsOf(text)).toMatchObject({ urls: [text], mustWrite: false })
  })

  it('loses target_session_attrs, which the driver does not know, and nothing else', () => {
    const cases = [
      ['?target_session_attrs=read-write', ''],
      ['?target_session_attrs=primary&sslmode=require', '?sslmode=require'],
      ['?sslmode=require&target_session_attrs=read-write', '?sslmode=require'],
      ['?a=1&target_session_attrs=read%2Dwrite&b=2', '?a=1&b=2'],
    ]
    for (const [given, left] of cases) {
      const { urls, mustWrite } = hostsOf(`postgres://a/db${given}`)
      expect([urls, mustWrite]).toEqual([[`postgres://a/db${left}`], true])
    }
    expect(hostsOf('postgres://a,b/db?target_session_attrs=any').mustWrite).toBe(false)
  })

  it.each(['standby', 'read-only', 'prefer-standby', 'READ-WRITE', '', 'constructor'])(
    'that asks for "%s" servers is refused',
    (value) => {
      const refusal = refusalOf(`postgres://u:s3cret@a,b/db?target_session_attrs=${value}`)
      expect(refusal).toMatchObject(UNUSABLE)
      expect(String(refusal)).not.toContain('s3cret')
    },
  )

  it.each(['a,,b', 'a:x,b', 'a:0,b', 'a:65536,b', ',a', 'a b,c', Array(33).fill('a').join()])(
    'is refused if "%s" are no hosts',
    (hosts) => {
      expect(refusalOf(`postgres://${hosts}/db`)).toMatchObject(UNUSABLE)
    },
  )

  it('uses each host in turn, however many connections report one failure', () => {
    const hosts = hostsOf('postgres://a,b,c/db')
    for (let i = 0; i < 3; i++) hosts.passOver(0)
    expect(hosts.turn).toBe(1)
    hosts.passOver(1)
    hosts.passOver(2)
    expect(hosts.turn).toBe(0)
  })
})
