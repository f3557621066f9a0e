// The screen of `pawl top` on a real pseudo-terminal, made by `script` (util-linux).
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { EVIL_NAME, HIDDEN } from './hostile-text.ts'
import { Place, PROGRAM, said } from './pawl.ts'

const hasScript = /util-linux/.test(String(spawnSync('script', ['--version']).stdout))
if (!hasScript) console.warn('SKIPPED: pawl top on a terminal needs `script` of util-linux')

const ENTER = '\u001b[?1049h'
const LEAVE = '\u001b[?1049l'
const BEGIN = '\u001b[?2026h'
const END = '\u001b[?2026l'

// biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal is controlled by them.
const CUT_FRAME = /every 1h (?:\u001b\[\d*m)*\u001b\[K[\s\S]*2026l/

/** Runs a shell line on a terminal of 12 rows and 60 columns; `top` is the command. */
function onTerminal(place: Place, line: string) {
  const top = `"${process.execPath}" "${PROGRAM}" top --interval 100ms`
  const shell = `stty rows 12 cols 60; ${line.replaceAll('TOP', top)}`
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, TERM: 'xterm-256color', SHELL: '/bin/sh', PAWL_STORE: place.store }
  const child = spawn('script', ['-qefc', shell, '/dev/null'], { cwd: place.folder, env })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function placeWithJob(): Promise<Place> {
  const place = new Place()
  await place.ok('job', 'enqueue', 'send', '1', '--queue', 'mail')
  return place
}

/** The lines of each frame. */
function framesOf(text: string): string[][] {
  const [, ...frames] = text.split(BEGIN)
  return frames.map((frame) => {
    const [body = '', rest] = frame.split(END)
    expect(rest, 'every frame ends').toBeDefined()
    // The terminal itself adds a carriage return to each line end.
    return body.split(/\r+\n/)
  })
}

/** The settings of the terminal after the command, and its exit code. */
const AFTER = 'echo "code $?"; stty -a'

function expectRestored(text: string): void {
  expect(text.split(ENTER)).toHaveLength(2)
  const [, after = ''] = text.split(LEAVE)
  expect(text.split(LEAVE)).toHaveLength(2)
  expect(after).not.toContain('\u001b')
  expect(text).toContain(`\u001b[?7h\u001b[?25h${LEAVE}`)
  expect(after).toMatch(/\sicanon\s/)
  expect(after).toMatch(/\secho\s/)
}

describe.skipIf(!hasScript)('pawl top on a terminal', { timeout: 60_000 }, () => {
  it.each([
    ['q', 0],
    ['\u0003', 130],
  ])('draws whole frames, and %j restores the terminal', async (key, code) => {
    const child = onTerminal(await placeWithJob(), `TOP; ${AFTER}`)
    void said(child.stdout, /(jobs {2}ready[\s\S]*){3}/).then(() => child.stdin.write(key))
    const text = await outputOf(child)
    expect(text).toContain(`code ${code}\r\n`)
    expectRestored(text)
    const frames = framesOf(text)
    expect(frames.length).toBeGreaterThan(3)
    for (const lines of frames) {
      expect(lines.length).toBeLessThanOrEqual(12)
      expect(lines.join('')).not.toContain('\u001b[2J')
    }
    expect(frames.at(-1)?.join('\n')).toContain('pawl top   every 100ms   q quits')
  })

  it('redraws for a terminal that becomes smaller', async () => {
    const place = await placeWithJob()
    const go = '(until [ -e go ]; do sleep 0.05; done; stty -F /dev/tty rows 5 cols 20) &'
    const child = onTerminal(place, `${go} TOP --interval 1h; ${AFTER}`)
    void said(child.stdout, /jobs {2}ready/).then(() => writeFileSync(join(place.folder, 'go'), ''))
    // The first frame that is cut after 20 columns. A frame may arrive in several chunks.
    void said(child.stdout, CUT_FRAME).then(() => child.stdin.write('q'))
    const text = await outputOf(child)
    expectRestored(text)
    const last = framesOf(text).at(-1) ?? []
    expect(last).toHaveLength(5)
    expect(last.join('\n')).toContain('pawl top   every 1h ')
    expect(last.join('\n')).not.toContain('q quits')
  })

  it('restores the terminal after a signal and after an error', async () => {
    const place = await placeWithJob()
    const killer = '(until [ -e go ]; do sleep 0.05; done; kill -TERM $(cat pid)) &'
    const child = onTerminal(place, `${killer} sh -c 'echo $$ > pid; exec TOP'; ${AFTER}`)
    void said(child.stdout, /jobs {2}ready/).then(() => {
      writeFileSync(join(place.folder, 'go'), '')
    })
    const text = await outputOf(child)
    expect(text).toContain('code 130\r\n')
    expectRestored(text)
    const missing = await outputOf(onTerminal(new Place(), `TOP; ${AFTER}`))
    expectRestored(missing)
    expect(missing.slice(missing.indexOf(LEAVE))).toMatch(
      /error: There is no store at [\s\S]*code 4\r/,
    )
  })

  it('shows hostile names as text', async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    const pawl = await createPawl({ store })
    await pawl.enqueue(defineJob({ name: 'evil', queue: EVIL_NAME }), 1)
    const child = onTerminal(place, 'stty rows 60; TOP --no-color')
    void said(child.stdout, /\\u\{202e\}/).then(() => child.stdin.write('q'))
    const frames = framesOf(await outputOf(child))
    const shown = frames
      .flat()
      .join('\n')
      .replaceAll('\u001b[H', '')
      .replaceAll('\u001b[K', '')
      .replaceAll('\u001b[J', '')
    expect(shown).toContain('n\\u{202e}')
    expect(shown).not.toMatch(HIDDEN)
  })
})

async function outputOf(child: ReturnType<typeof onTerminal>): Promise<string> {
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await new Promise((resolve) => child.once('close', resolve))
  return text
}
