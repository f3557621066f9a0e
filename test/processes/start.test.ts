// `npm start` on a terminal: it ends with the dashboard on what it has made, until Ctrl-C.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'

const TERMINAL = fileURLToPath(new URL('terminal.py', import.meta.url))

/** Starts a command on a terminal, with a folder of its own for temporary files. */
function onTerminal(command: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-terminal-'))
  const env = { ...process.env, TMPDIR: folder, TERM: 'xterm' }
  const child = spawn('python3', [TERMINAL, ...command], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  let printed = ''
  const ended = once(child, 'close')
  child.stdout.setEncoding('utf8')
  /** Resolves when the pattern was printed; rejects if the program ends before that. */
  const until = (pattern: RegExp) =>
    new Promise<RegExpMatchArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(printed)
        if (found) resolve(found)
      }
      child.stdout.on('data', look)
      void ended.then(() => reject(new Error(`It ended without ${pattern}:\n${printed}`)))
      look()
    })
  child.stdout.on('data', (text: string) => {
    printed += text
  })
  return { child, folder, until, ended, text: () => printed }
}

describe('npm start on a terminal', () => {
  it('shows the dashboard on what it has made; Ctrl-C ends it and removes the data', async () => {
    const { child, folder, until, ended, text } = onTerminal(['npm', 'start'])
    const [, url = ''] = await until(/Look at it: (http:\/\/\S+)\s+Press Ctrl-C to stop/)
    const page = await fetch(url)
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<title>Pawl')])
    const stats = (await (await fetch(`${url}/api/v1/stats`)).json()) as {
      lanes: { ended: number }
    }
    expect(stats.lanes.ended).toBe(200)
    const data = readdirSync(folder).filter((name) => name.startsWith('pawl-showcase-'))
    expect(data).toHaveLength(1)

    child.stdin.write('^C\n')
    // npm reports the signal as shells do. Its child has ended as well: the terminal was closed.
    expect(await ended, text()).toEqual([130, null])
    expect(data.some((name) => existsSync(join(folder, name)))).toBe(false)
    await expect(fetch(url)).rejects.toThrow()
  }, 180_000)
})
