// `npm run lock`: adds to the lock files the platform packages that npm left out of them. Tools
// written in native code come as one optional package per platform, and npm locks only those that
// it could load where the lock file was written. `npm ci` then refuses the lock file, or leaves a
// tool without its program on the other platforms.
import { readFileSync, writeFileSync } from 'node:fs'

const paths = ['package-lock.json', 'bench/peers/package-lock.json']
const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

for (const path of paths) {
  const added = complete(path)
  console.log(`${added.length} platform packages added to ${path}`)
}

/** Returns the names of the packages that were missing. */
function complete(path) {
  const lock = JSON.parse(readFileSync(path, 'utf8'))
  const added = []
  for (const parent of Object.values(lock.packages)) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      const key = `node_modules/${name}`
      const platform = platformOf(name)
      if (lock.packages[key] || !platform) continue
      const { cpu, libc, os } = platform
      const dev = parent.dev
      // Fields stand in npm's own order, and undefined ones are not written.
      lock.packages[key] = { version, cpu, dev, libc, optional: true, os }
      added.push(name)
    }
  }
  if (added.length > 0) {
    lock.packages = Object.fromEntries(
      Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')),
    )
    writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
  }
  return added
}

/** The platform for which a package is made, as its name tells; undefined if it does not. */
function platformOf(name) {
  const words = name.split(/[/-]/)
  const cpu = processors.find((processor) => words.includes(processor))
  const os = systems.find((system) => words.includes(system))
  const libc = /-musl/.test(name) ? 'musl' : /-gnu/.test(name) ? 'glibc' : undefined
  return cpu && { cpu: [cpu], libc: libc && [libc], os: os && [os] }
}
