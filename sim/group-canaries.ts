/** Bugs planted in groups; see `canaries.ts`. */
import { type Canary, canary, change, lane } from './planted.ts'

const rotation = 'core/limits/rotation.js'
const strict = 'stores/sqlite/statements/strict.js'

export const GROUPS: readonly Canary[] = [
  canary(
    'a group keeps its turn as long as it has jobs',
    'P13',
    change(rotation, 'this.credit--;', ''),
  ),
  canary(
    'every group has the weight 1',
    'P13',
    change(
      rotation,
      '#before.weight;\n        return true;\n    }\n    /** W',
      '#before.weight && 1;\n        return true;\n    }\n    /** W',
    ),
  ),
  canary(
    'a group that begins to wait goes before the others',
    'P13',
    change(
      'stores/sqlite/statements/groups.js',
      'connection.run(ENTER, key, queue, ++turn, weight, weightAt)',
      'connection.run(ENTER, key, queue, -(++turn), weight, weightAt)',
    ),
  ),
  canary(
    'a strict group does not wait for a retry',
    'P13',
    change(
      strict,
      `AND lane <> ${lane('ended')} AND`,
      `AND lane <> 1 AND lane <> ${lane('ended')} AND`,
    ),
  ),
  canary(
    'a strict group goes by priority',
    'P13',
    change(
      strict,
      '= ? ORDER BY created_at, rid LIMIT 1`;\nconst SELECT_JOB',
      '= ? ORDER BY priority, created_at, rid LIMIT 1`;\nconst SELECT_JOB',
    ),
  ),
  canary(
    'the jobs of a strict group run at the same time',
    'P13',
    change('core/limits/gates.js', 'used: gate.used + 1', 'used: gate.used'),
    change('stores/verbs/claim-limited.js', 'heads.get(group.gate) === ref ? one', 'true ? one'),
  ),
]
