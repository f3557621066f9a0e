// Puts a link to another folder in the place of a folder and takes it away again, as fast as it
// can, until its parent goes. It says when it has begun.
import { renameSync, symlinkSync, unlinkSync } from 'node:fs'

const { folder, elsewhere } = JSON.parse(process.argv[2])
const away = `${folder}.away`
process.on('disconnect', () => process.exit(0))

function swap() {
  for (let i = 0; i < 5; i++) {
    try {
      renameSync(folder, away)
      symlinkSync(elsewhere, folder)
      unlinkSync(folder)
      renameSync(away, folder)
    } catch (error) {
      // A folder that the other side has made in its place stays; the next round goes on.
      if (error.code !== 'ENOENT' && error.code !== 'EEXIST' && error.code !== 'EISDIR') throw error
    }
  }
  // In between, the folder is in its place long enough for something to be written.
  setTimeout(swap, 1)
}

swap()
process.send('begun')
