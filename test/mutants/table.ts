/** The files that `make mutants` changes, the tests that must notice, and the changes that they cannot notice. */

/** A change that the domain's tests leave alive. */
export interface Survivor {
  /** The text that is replaced, with single spaces. */
  readonly from: string;
  readonly to: string;
  /** Text of the line on which the change begins, where the file has `from` on other lines too. */
  readonly within?: string | undefined;
  /** Why no test can notice, or the test of another level that does. */
  readonly why: string;
}

export interface MutatedFile {
  readonly file: string;
  readonly tests: readonly string[];
  /** Percent that the tests must notice of the changes that are not named as survivors. */
  readonly threshold: number;
  readonly survivors: readonly Survivor[];
  /** Kinds of change that StrykerJS cannot make in this file, by its names for them. */
  readonly excluded?: readonly string[];
}

/** Changes that live for one reason. */
const unnoticed = (
  why: string,
  ...changes: readonly (readonly [from: string, to: string, within?: string])[]
): readonly Survivor[] => changes.map(([from, to, within]) => ({ from, to, within, why }));

/** The tests of `media.ts` are `media.test.ts`, unless a row names others. */
const domain = (name: string, row: Partial<Omit<MutatedFile, 'file'>> = {}): MutatedFile => ({
  file: `services/domain/${name}.ts`,
  tests: [`test/services/domain/${name}.test.ts`],
  threshold: 90,
  survivors: [],
  ...row,
});

/** A file of the post's folder, whose tests stand beside those of the other streams. */
const post = (name: string, row: Partial<Omit<MutatedFile, 'file'>> = {}): MutatedFile =>
  domain(`post/${name}`, { tests: [`test/services/domain/${name}.test.ts`], ...row });

const targetTests = [
  'target',
  'target-native',
  'target-shift',
  'target-restored',
  'target-waits',
  'target-processing',
  'target-after-steps',
  // Random histories: seconds, where the others take milliseconds.
  'target-comment',
  'target-thread',
] as const;

/**
 * The table of the target's commands, and the files of that folder: nine tests hold them all. The test that holds
 * most of a file runs first: the others need not run for what it notices.
 */
const target = (name: string, first: (typeof targetTests)[number], survivors: readonly Survivor[] = []): MutatedFile =>
  domain(`post-target/${name}`, {
    tests: [first, ...targetTests.filter((one) => one !== first)].map((one) => `test/services/domain/${one}.test.ts`),
    threshold: 95,
    survivors,
  });

/** A protocol over several streams, under the test that races and kills its callers. */
const workflow = (name: string, tests: readonly string[], survivors: readonly Survivor[] = []): MutatedFile => ({
  file: `services/workflows/${name}.ts`,
  tests: tests.map((one) => `test/services/workflows/${one}.test.ts`),
  threshold: 80,
  survivors,
});

const faultPoints = (...names: readonly string[]): readonly Survivor[] =>
  unnoticed(
    'It is the name of a moment at which `make chaos` kills.',
    ...names.map((one) => [`'${one}'`, '""'] as const),
  );

const isDefault = 'It is what Temporal does by default, written out for the reader.';
const compatible = unnoticed(isDefault, ["{ disambiguation: 'compatible' }", '{}']);

/** It would negate a property of strings such as `RGI_Emoji`, and no pattern may do that. */
const stringProperties = ['Regex'];
const wordsOfContract = 'The words are those of the contract: test/services/api/contracts.test.ts.';
const ofNetwork = (name: string): string => `test/services/domain/platforms/${name}.test.ts`;
const text = ['text-examples', 'text'].map(ofNetwork);
const figures = ['figure-source', 'insights/table', 'insights/figures'].map(ofNetwork);
const network = ['gate', 'gate-media', 'overrides', 'insights/figures', 'permalink', 'reading'].map(ofNetwork);
const people = ['test/services/domain/people.test.ts'];
const renditions = ['plan', 'rules', 'property'].map((one) => `test/services/domain/renditions/${one}.test.ts`);

export const mutatedFiles: readonly MutatedFile[] = [
  target('target', 'target', [
    ...unnoticed(
      'An outcome carries a failure exactly where it failed.',
      ["outcome === 'failed' && failure !== null", "outcome === 'failed' || failure !== null"],
      ["outcome === 'failed'", 'true'],
      ['failure !== null', 'true'],
    ),
    ...unnoticed('The next case is about published targets, none of which had a place to lose.', [
      "case 'TargetPlaceLapsed': return state;",
      "case 'TargetPlaceLapsed':",
    ]),
    ...unnoticed('Of two equal instants either is the later one.', [
      'occurredAt < common.dueAt',
      'occurredAt <= common.dueAt',
    ]),
  ]),
  target('absence', 'target'),
  target(
    'after-steps',
    'target-after-steps',
    unnoticed(
      'A cover is the one step so far.',
      ['(one) => one.step !== step', '() => undefined'],
      ['one.step !== step', 'false'],
      ['one.step === step', 'true'],
    ),
  ),
  target('processing', 'target-processing'),
  target('first-comment', 'target-comment'),
  target('native', 'target-native', [
    ...unnoticed('Of two equal instants either is the later one.', ['notBefore > dueAt', 'notBefore >= dueAt']),
    ...unnoticed('No text is before null.', ['changed.retryAt !== null', 'true']),
    ...unnoticed('What is tried again at its due time starts at its due time.', [
      'changed.retryAt < common.dueAt',
      'changed.retryAt <= common.dueAt',
    ]),
  ]),
  target('overdue', 'target'),
  domain('post-target/places', {
    tests: ['target-places', 'target-waits'].map((one) => `test/services/domain/${one}.test.ts`),
    threshold: 95,
    survivors: unnoticed(
      'Only the request of an undo says what follows it.',
      ["event.type === 'TargetUndoRequested'", 'true'],
      [
        "event.type === 'TargetUndoRequested' && event.data.then === 'reschedule'",
        "event.type === 'TargetUndoRequested' || event.data.then === 'reschedule'",
      ],
    ),
  }),
  target('restored', 'target-restored', [
    ...unnoticed('No text is after null.', ['common.knownAt !== null', 'true'], ['at === null', 'false']),
    ...unnoticed(
      'The only segment is the first one.',
      ['segments[0]?.content', 'segments[0].content'],
      ["''", '"Stryker was here!"', 'segments[0]'],
    ),
    ...unnoticed('Only an unknown outcome is restored or asked about.', ["state.status === 'outcome_unknown'", 'true']),
  ]),
  target('shift', 'target-shift'),
  target('outcome', 'target', [
    ...unnoticed('What was never published has no `removedAt`, so the second half of the condition holds too.', [
      "state.status !== 'published'",
      'false',
    ]),
  ]),
  target('publish', 'target'),
  target('schedule', 'target', [
    ...unnoticed(
      'Of two equal instants either is the later one.',
      ['dueAt < now', 'dueAt <= now'],
      ['common.dueAt < now', 'common.dueAt <= now'],
      ['common.dueAt > now', 'common.dueAt >= now'],
    ),
    ...unnoticed('Only an unknown outcome is restored.', ["state.status === 'outcome_unknown'", 'true']),
  ]),
  target('settle', 'target', [
    ...unnoticed(
      'An outcome is unknown only after a boundary was crossed.',
      ['boundary?.segment', 'boundary.segment'],
      ['target.boundary?.segment', 'target.boundary.segment'],
    ),
    ...unnoticed('A failure has no id that could be that of an earlier segment.', [
      "outcome.kind === 'published'",
      'true',
    ]),
  ]),
  target('state', 'target', [
    ...unnoticed(
      'Of two equal instants either is the later one, and no number is greater than that of no instant.',
      ['Date.parse(retryAt) > Date.parse(at)', 'Date.parse(retryAt) >= Date.parse(at)'],
      ['retryAt !== undefined', 'true'],
    ),
    ...unnoticed('Who asks has asked before whether the network was called.', ['state.boundary === null', 'true']),
    ...unnoticed('A target in another status has no undo.', [
      "state.status === 'handed_to_platform' || state.status === 'publishing' || state.status === 'outcome_unknown'",
      'true',
    ]),
    ...unnoticed(
      'A target that does not exist has no open status.',
      ["state.status !== 'none'", 'true'],
      ["'none'", '""', 'openStatuses'],
    ),
  ]),
  target('thread', 'target-thread'),
  post('scheduling', {
    tests: ['scheduling', 'target-native'].map((one) => `test/services/domain/${one}.test.ts`),
    threshold: 95,
    survivors: [
      ...unnoticed('Each network refuses values of one setting.', [
        'Object.entries(rulesOf(platform).nativeWindow?.refuses ?? {}).some(([key, values]) => values.some((value) => value === overrides[key]), )',
        'Object.entries(rulesOf(platform).nativeWindow?.refuses ?? {}).every(([key, values]) => values.some((value) => value === overrides[key]), )',
      ]),
      ...unnoticed(
        'No text is before or after null.',
        ['from !== null && to !== null', 'from !== null || to !== null'],
        ['from !== null', 'true'],
        ['to !== null', 'true'],
      ),
      ...unnoticed('It only saves the hash: any number modulo 1 is 0.', ['spreadMinutes === 0', 'false']),
      ...unnoticed('A selection holds an account once.', ['a.accountId < b.accountId', 'a.accountId <= b.accountId']),
    ],
  }),
  domain('account'),
  domain('apikey'),
  domain('best-times', {
    survivors: [
      ...unnoticed(
        'It only saves the same computation.',
        ['found !== undefined', 'false'],
        ['known.set(quarter, slot);', ';'],
      ),
      ...unnoticed(
        'A group has a member, and there are three levels.',
        ['targets[0]?.slot', 'targets[0].slot'],
        ['levels.at(-1)?.means', 'levels.at(-1).means'],
      ),
    ],
  }),
  domain('client'),
  domain('clientname', {
    survivors: [
      ...unnoticed(
        'A free name has no owner whose id a command could name.',
        ["state.status === 'claimed'", 'true'],
        ["state.status === 'free'", 'false'],
        ["'free'", '""'],
      ),
    ],
  }),
  post('compose', {
    survivors: [
      ...unnoticed(
        'No file has the id null or undefined, and no frame lies before null.',
        ['asset === undefined', 'false'],
        ['body.coverMediaId === null', 'false'],
        ['coverFrameMs === null', 'false'],
        ['id === undefined', 'false'],
      ),
      ...unnoticed(
        'A file that is not known is refused before the gate is asked: test/services/api/post-media.test.ts.',
        ['[]', '["Stryker was here"]'],
      ),
      ...unnoticed(
        'No rule for an override of a head alone reads the segment.',
        ['index === 0', 'true'],
        ['index === 0', 'index !== 0'],
      ),
    ],
  }),
  post('content', {
    tests: ['content', 'content-hash', 'post-media'].map((one) => `test/services/domain/${one}.test.ts`),
    survivors: [
      ...unnoticed(
        'What goes out as a thread has one.',
        ['body.thread?.segments', 'body.thread.segments'],
        ['[]', '["Stryker was here"]', '?? []'],
      ),
    ],
  }),
  domain('externalref', {
    survivors: [
      ...unnoticed(
        'A free reference has no post whose id a command could name.',
        ["state.status === 'claimed'", 'true', 'const own'],
        ["state.status === 'free'", 'false', 'state.postId !== command.postId'],
        ["'free'", '""', 'state.postId !== command.postId'],
      ),
    ],
  }),
  domain('insights', {
    survivors: [
      ...unnoticed('No day is called null.', ['one.figuresDay === null', 'false'], ['figuresDay === null', 'false']),
      ...unnoticed(
        'Each day is there once, and observations of earlier days have one.',
        ["(one.figuresDay ?? '') < (other.figuresDay ?? '')", "(one.figuresDay ?? '') <= (other.figuresDay ?? '')"],
        ["''", '"Stryker was here!"'],
        ['one < other', 'one <= other'],
      ),
    ],
  }),
  domain('invite'),
  domain('media'),
  domain('platforms/gate', {
    tests: ['platforms/gate', 'platforms/gate-media', 'preview'].map((one) => `test/services/domain/${one}.test.ts`),
    survivors: [
      ...unnoticed('No scope that a network grants is called so.', ['[]', '["Stryker was here"]', 'scopes = []']),
      ...unnoticed(
        'No shape of a network needs more than one file, so none that are there are too few.',
        ['count < Math.min(...rows.map(({ min }) => min))', 'false'],
        ['count < Math.min(...rows.map(({ min }) => min))', 'count <= Math.min(...rows.map(({ min }) => min))'],
        ['Math.min(...rows.map(({ min }) => min))', 'Math.max(...rows.map(({ min }) => min))'],
        ['({ min }) => min', '() => undefined'],
        ['count === 1', 'false'],
        ["'there is'", '""'],
        ["'too_few_media'", '""'],
        ["'least'", '""'],
      ),
      ...unnoticed(
        'The files whose ratio is compared are pictures, which have both sizes.',
        ['width === null || height === null', 'false'],
        ['width === null || height === null', 'width === null && height === null'],
        ['width === null', 'false'],
        ['height === null', 'false'],
      ),
      ...unnoticed('A plan answers each need that is asked of it.', ['plan?.outcome', 'plan.outcome']),
      ...unnoticed('Nothing stands between fewer than two words.', ["''", '"Stryker was here!"', 'words.join']),
      ...unnoticed('Only a plan of a rendition has a spec.', ["plan?.outcome === 'rendition'", 'true']),
      ...unnoticed('Files are shown for a use that the network has.', [
        'useRules(platform, use)?.gif',
        'useRules(platform, use).gif',
      ]),
      ...unnoticed('Each kind is in one shape of a use, so files that are there suit one shape at most.', [
        'Math.max(...rows.map(({ max }) => max))',
        'Math.min(...rows.map(({ max }) => max))',
      ]),
    ],
  }),
  post('post', {
    tests: ['post', 'post-approval', 'post-bodies'].map((one) => `test/services/domain/${one}.test.ts`),
    survivors: [
      ...unnoticed('A target that is published has the instant of it.', ["''", '"Stryker was here!"']),
      ...unnoticed(
        'Only a cancel has a reason, and only a revision a command.',
        ["intents.filter((intent) => intent.kind === 'cancel')", 'intents'],
        ["intent.kind === 'cancel'", 'true', 'const cancels'],
        ["intent.kind === 'revise'", 'true', 'intent.commandId'],
      ),
      ...unnoticed(
        'A draft has no plan yet: its number of plans is 0.',
        ["state.status === 'draft'", 'false', 'state.plans'],
        ["'draft'", '""', 'state.plans'],
      ),
    ],
  }),
  post('preview', {
    tests: ['preview', 'post-warnings'].map((one) => `test/services/domain/${one}.test.ts`),
    survivors: [
      ...unnoticed('A plan answers each need that is asked of it.', ['plan?.outcome', 'plan.outcome']),
      ...unnoticed('Only a file that failed has a failure.', ["status !== 'failed'", 'false']),
      ...unnoticed(
        'A file that is not known is no video, and is shown nowhere.',
        ["'image'", '""', "kind ?? 'image'"],
        ['[]', '["Stryker was here"]', 'asset === undefined'],
      ),
      ...unnoticed('It stands for no file, in each key alike.', ["''", '"Stryker was here!"', "mediaId = ''"]),
    ],
  }),
  domain('refresh'),
  domain('report', {
    survivors: unnoticed('Only a live report has a definition.', [
      "state.status === 'live'",
      'true',
      'isDeepStrictEqual',
    ]),
  }),
  domain('request'),
  domain('webhook', {
    survivors: unnoticed('An endpoint that was registered has a secret.', [
      'state.secrets[0]?.generation',
      'state.secrets[0].generation',
    ]),
  }),
  domain('approval'),
  domain('campaign', {
    survivors: [
      ...unnoticed('The schema lets no member be undefined.', ['value !== undefined', 'true']),
      ...unnoticed(
        'No text is before or after null.',
        ['startsOn !== null && endsOn !== null', 'true'],
        ['startsOn !== null && endsOn !== null', 'startsOn !== null || endsOn !== null'],
        ['startsOn !== null', 'true'],
        ['endsOn !== null', 'true'],
      ),
    ],
  }),
  domain('grant'),
  domain('cadence', {
    survivors: unnoticed('The time itself is a begin in any case.', ['begin <= at', 'begin < at']),
  }),
  domain('cadence-decision'),
  domain('quota', {
    survivors: unnoticed(
      'It is asked of two of which the second awaits an append.',
      ['other?.stream', 'other.stream'],
      ['other?.revision', 'other.revision'],
    ),
  }),
  domain('person', { tests: people }),
  domain('personemail', {
    tests: people,
    survivors: unnoticed('A free address has no owner whose id a command could name.', [
      "state.status === 'claimed'",
      'true',
      'const isOwn',
    ]),
  }),
  domain('session', { tests: people }),
  domain('teaminvite', {
    tests: people,
    survivors: unnoticed('Only an accepted invitation has a person.', ["state.status === 'accepted'", 'true']),
  }),
  domain('client-rules', {
    survivors: [
      ...unnoticed('One short entry breaks no bound.', ['[]', '["Stryker was here"]', ': []']),
      ...unnoticed('No allowed host is called so.', ["''", '"Stryker was here!"', 'hostname']),
      ...unnoticed('The root of the words is never looked at.', ['at !== banned', 'true']),
      ...unnoticed(
        'Behind the last word is none, and no word is empty.',
        ['start < words.length', 'start <= words.length'],
        ['index < words.length', 'true'],
        ['index < words.length', 'index <= words.length'],
        ["''", '"Stryker was here!"', 'words[index]'],
      ),
      ...unnoticed(
        'It only saves the look at the links.',
        ["policy === 'any'", 'false', 'return null'],
        ["'any'", '""', 'return null'],
      ),
    ],
  }),
  domain('observed-limits', {
    survivors: [
      ...unnoticed(
        'Neither null nor such a text is an instant, and what is none is never ahead.',
        ["''", '"Stryker was here!"', 'Date.parse'],
        ['resetsAt !== null', 'true'],
      ),
      ...unnoticed('It is only compared with itself.', ['used >= seen.limit', 'used < seen.limit']),
    ],
  }),
  domain('targetcalls'),
  domain('canonical'),
  domain('shown-content'),
  post('post-approval', {
    tests: ['post-approval', 'post'].map((one) => `test/services/domain/${one}.test.ts`),
    survivors: unnoticed('A revise that is held has an approval.', ['approval === null', 'false', 'asking?.revision']),
  }),
  post('post-bodies'),
  post('post-recycle', {
    survivors: [
      ...unnoticed('It falls to the next case, where no next run has the day of none.', [
        "case 'PlanRecycle': return recycle.next === null ? planned(recycle, command.then) : [];",
        "case 'PlanRecycle':",
      ]),
      ...unnoticed('No text is after null.', ['until !== null', 'true']),
    ],
  }),
  post('post-state', {
    survivors: [
      ...unnoticed('A revision is a number.', ['[]', '["Stryker was here"]', 'planHeld']),
      ...unnoticed('Only a revise can be held.', ["one.kind === 'revise'", 'true']),
      ...unnoticed(
        'No revision is both of a release and of what it is asked for.',
        ['revision > ask', 'revision >= ask', "kind === 'release'"],
        ['revision < next', 'revision <= next'],
      ),
    ],
    tests: ['post-approval', 'post-bodies', 'post'].map((one) => `test/services/domain/${one}.test.ts`),
  }),
  post('recycle-times'),
  domain('workspace', { tests: ['test/services/domain/workspace.test.ts', ...people] }),
  domain('engagement'),
  domain('ids', { tests: ['test/services/domain/ids.test.ts', 'test/names-on-disk.test.ts'] }),
  domain('report-windows', {
    survivors: [...compatible, ...unnoticed(isDefault, ["{ overflow: 'constrain' }", '{}'])],
  }),
  domain('roles'),
  domain('zones', {
    survivors: [
      ...unnoticed(
        'It only saves asking for a zone again, and the memory of names without end.',
        ['name.length > 100', 'false'],
        ['name.length > 100', 'name.length >= 100'],
        ['answer !== undefined', 'false'],
        ...['true', 'false', 'known.size >= 2_000', 'known.size <= 2_000'].map(
          (to) => ['known.size < 2_000', to] as const,
        ),
        ['known.set(name, valid);', ';'],
      ),
      ...compatible,
    ],
  }),
  domain('platforms/media-use', {
    tests: ['post-media', 'platforms/gate', 'platforms/gate-media'].map((one) => `test/services/domain/${one}.test.ts`),
  }),
  domain('platforms/media-violations'),
  domain('platforms/overrides', {
    tests: ['overrides', 'gate'].map((one) => `test/services/domain/platforms/${one}.test.ts`),
    survivors: [
      ...unnoticed(wordsOfContract, [
        "'Whether the content was made with AI, where this network differs from the `aiDisclosure` of the post.'",
        '""',
      ]),
      ...unnoticed(
        'No number is greater than undefined.',
        ['rule.max !== undefined', 'true'],
        ['rule.maxBytes !== undefined', 'true'],
        ['rule.maxItems !== undefined', 'true'],
        ['rule.maxChars !== undefined', 'true'],
      ),
      ...unnoticed('Only a value that was found right is normalised: that of an enum is a string.', [
        "typeof value === 'string'",
        'true',
        "rule.type === 'enum'",
      ]),
      ...unnoticed(
        'Only an enum has `grantedBy`, and no scope begins with `undefined`.',
        ["rule.type !== 'enum' || rule.grantedBy === undefined", 'false'],
        [
          "rule.type !== 'enum' || rule.grantedBy === undefined",
          "rule.type !== 'enum' && rule.grantedBy === undefined",
        ],
        ["rule.type !== 'enum'", 'false'],
        ['rule.grantedBy === undefined', 'false'],
      ),
    ],
  }),
  domain('platforms/registry', {
    tests: ['permalink', 'connectable', 'reading', 'gate', 'text'].map(
      (one) => `test/services/domain/platforms/${one}.test.ts`,
    ),
  }),
  domain('platforms/text-length', {
    tests: [...text, ofNetwork('gate')],
    excluded: stringProperties,
    survivors: [
      ...unnoticed(
        'It only saves looking at each grapheme.',
        ['isPlain(text)', 'false'],
        ['(text: string): boolean => /^[\\n\\x20-\\x7e]*$/.test(text)', '() => undefined'],
      ),
      ...unnoticed('Normalised text has no U+2000.', ['code >= 0x2000', 'code > 0x2000']),
      ...unnoticed('Behind the last character is nothing that weighs.', ['at < text.length', 'at <= text.length']),
      ...unnoticed('It is the default, written out for the reader.', ["{ granularity: 'grapheme' }", '{}']),
      ...unnoticed('Of two that are passed alike either is the tightest.', [
        'b.used / b.limit > a.used / a.limit',
        'b.used / b.limit >= a.used / a.limit',
      ]),
      ...unnoticed('No override is called undefined.', ['key === undefined', 'false']),
    ],
  }),
  domain('platforms/networks/telegram', {
    tests: [ofNetwork('networks/telegram'), ...text, ...network],
    survivors: [
      ...unnoticed(
        'Behind the last character is none, and what is looked for lies behind a sign before it.',
        ['end < text.length', 'end <= text.length', '!/['],
        ['at < text.length', 'at <= text.length', 'let at = 0'],
        ['at < text.length', 'at <= text.length', "!== ')'"],
        ['found < 0', 'found <= 0'],
        ['close < 0', 'close <= 0'],
      ),
      ...unnoticed(
        wordsOfContract,
        ["'How markup in the text is read. Absent: the text has no markup.'", '""'],
        ["'Sends the message without a sound.'", '""'],
        ["'Forbids forwarding and saving.'", '""'],
        [
          "'A reply to the published message in the same chat. If it fails, the message stays published and `firstCommentIssue` says why.'",
          '""',
        ],
      ),
      ...unnoticed('A figure that is computed is shown as such, without the name of its source.', [
        "'message_reaction_count.reactions[].total_count'",
        '""',
      ]),
    ],
  }),
  domain('platforms/networks/youtube', {
    tests: [ofNetwork('networks/youtube'), ...network],
    survivors: [
      ...unnoticed(
        wordsOfContract,
        [
          "'Title of 1 to 100 characters, without < and >. Absent: the first line of the content that has text; without a usable title the target fails when it is published.'",
          '""',
        ],
        [
          "'Who sees the video. Absent: everybody: YouTube’s API makes such a video public, whatever the channel has as its default.'",
          '""',
        ],
        [
          "'Category: 1 Film and Animation, 2 Autos and Vehicles, 10 Music, 15 Pets and Animals, 17 Sports, 19 Travel and Events, 20 Gaming, 22 People and Blogs, 23 Comedy, 24 Entertainment, 25 News and Politics, 26 Howto and Style, 27 Education, 28 Science and Technology, 29 Nonprofits and Activism.'",
          '""',
        ],
        ["'Whether the video is made for children; always sent.'", '""'],
        ["'Tags, at most 500 characters together. One string with commas is read too.'", '""'],
        ["'Licence of the video. Absent: the standard licence.'", '""'],
        ["'Replaces the content as the description: at most 5,000 UTF-8 bytes, without < and >.'", '""'],
        [
          "'A top-level comment on the published video, at most 10,000 characters. If it fails, the video stays published and `firstCommentIssue` says why. Without the permission to comment on its connection, the network refuses it.'",
          '""',
        ],
      ),
      ...unnoticed(
        'A figure that is computed is shown as such, without the name of its source.',
        [`\`\${report}: \${value} by \${column}\``, '``'],
        ["'retention: audienceWatchRatio by elapsedVideoTimeRatio'", '""'],
        ["'viewers, countries, devices'", '""'],
      ),
      ...unnoticed('A report has a breakdown, or none: it never says null.', ['reported === null', 'false']),
    ],
  }),
  domain('platforms/figure-source', { tests: figures }),
  domain('platforms/read-figures', {
    tests: figures,
    survivors: [
      ...unnoticed('No figure has that name.', ['[]', '["Stryker was here"]', 'fields = []']),
      ...unnoticed(
        'No reason is so long: a name of ours and a label of at most 100 characters.',
        ['error.message.slice(0, maxReason)', 'error.message'],
        ['reason.slice(0, maxReason)', 'reason'],
      ),
      ...unnoticed('The place of an issue begins with the figure.', ["''", '"Stryker was here!"', "split('/')"]),
    ],
  }),
  domain('platforms/meta-insights', {
    tests: figures,
    survivors: unnoticed('A figure that is computed is shown as such, without the name of its source.', [
      "'follower_demographics'",
      '""',
      "'follower_demographics',",
    ]),
  }),
  domain('renditions/canvas'),
  domain('renditions/image', { tests: renditions }),
  domain('renditions/index', {
    tests: renditions,
    survivors: [
      ...unnoticed('What takes no documents finds another violation than their bytes.', ['document !== null', 'true']),
      ...unnoticed(
        'No use but a cover takes images and no videos, and each takes one of the two.',
        ["image !== null && need.use === 'cover'", 'true'],
        ["image !== null && need.use === 'cover'", "image !== null || need.use === 'cover'"],
        ['image !== null', 'true', "need.use === 'cover'"],
        ["need.use === 'cover'", 'true'],
        ['{ failure: notTaken(need, probe.kind) }', '{}', ': { failure'],
      ),
      ...unnoticed('Without rules there is a canvas for every picture.', ['canvas === null', 'false']),
    ],
  }),
  domain('renditions/ladder', {
    tests: ['test/services/domain/renditions/ladder.test.ts', ...renditions],
    survivors: [
      ...unnoticed('No two rungs have one rate.', ['videoKbps > one.videoKbps', 'videoKbps >= one.videoKbps']),
      ...unnoticed(
        'Null is not above 0, and no rate is a multiple of 0.',
        ['fps === null', 'false'],
        ['fps <= 0', 'fps < 0'],
      ),
      ...unnoticed('No rate that is measured lies just there.', [
        'Math.abs(rate / fps - Math.round(rate / fps)) < 0.01',
        'Math.abs(rate / fps - Math.round(rate / fps)) <= 0.01',
      ]),
    ],
  }),
  domain('renditions/video', {
    tests: ['test/services/domain/renditions/video.test.ts', ...renditions],
    survivors: [
      ...unnoticed(
        'Who plans the video has looked at them before.',
        ...['(video === null || width === null || height === null) && durationMs === null', 'false'].map(
          (to) => ['video === null || width === null || height === null || durationMs === null', to] as const,
        ),
        ...['(video === null || width === null) && height === null', 'false'].map(
          (to) => ['video === null || width === null || height === null', to] as const,
        ),
        ...['video === null && width === null', 'false'].map((to) => ['video === null || width === null', to] as const),
        ...['video === null', 'width === null', 'height === null', 'durationMs === null'].map(
          (from) => [from, 'false', 'video === null'] as const,
        ),
        ['one !== null', 'true'],
      ),
      ...unnoticed(
        'What moves has a video, and no MP4 carries that of a gif, which has no sound.',
        ['video?.hdr', 'video.hdr'],
        ['probe.video?.fps', 'probe.video.fps'],
        ['probe.video?.constantRate', 'probe.video.constantRate'],
        ["kind === 'video'", 'true', 'every'],
        ["probe.kind === 'video'", 'true', 'const sound'],
      ),
    ],
  }),
  workflow(
    'clients/change',
    ['clients', 'client-names'],
    [...faultPoints('client:after-claim', 'client:after-append', 'client:after-release')],
  ),
  workflow(
    'clients/create',
    ['clients', 'client-names'],
    [
      ...faultPoints('client:after-claim', 'client:after-append'),
      ...unnoticed(
        'A client that exists has the event that made it.',
        ['birthOf(client, events)?.metadata', 'birthOf(client, events).metadata'],
        ['creation === undefined', 'false'],
      ),
    ],
  ),
  workflow(
    'clients/names',
    ['clients', 'client-names'],
    [
      ...unnoticed(
        'A holder whose claim is not to be broken is treated as one of a free name.',
        ["{ kind: 'free' }", '{}'],
        ["'free'", '""'],
        ["'holds'", '""', 'breakClaim'],
        ["holder.kind === 'uncreated' || holder.kind === 'doubtful'", 'true'],
        ["holder.kind !== 'free'", 'true'],
        ["holder.kind !== 'holds'", 'true'],
      ),
    ],
  ),
  workflow(
    'fan-out',
    ['fan-out'],
    [
      ...faultPoints('fanout:before-targets', 'fanout:between-targets', 'fanout:between-intents'),
      ...faultPoints('fanout:before-skips', 'fanout:after-skips'),
      ...unnoticed('Behind the last group is an empty one.', ['at < items.length', 'at <= items.length']),
      ...unnoticed(
        'A member that is undefined is as one that is absent.',
        ['options.positions === undefined', 'false'],
        ['context.giveUpAt === undefined', 'false'],
      ),
      ...unnoticed(
        'A post that is live has the event of its plan, and one with an intent that of the intent.',
        ['plan === undefined', 'false'],
        ['decision === undefined', 'false'],
      ),
      ...unnoticed(
        'Each target of an intent is one of the plan, which this run has read or made before.',
        ["state.status === 'none'", 'false'],
        ["'none'", '""'],
        ["before.state.status !== 'none'", 'true'],
        [
          'targets.get(targetId) ?? (await store.load(target, targetId))',
          'targets.get(targetId) && (await store.load(target, targetId))',
        ],
        ['targets.set(targetId, before);', ';'],
        ['targets.get(targetId)?.state', 'targets.get(targetId).state'],
        ["state === undefined || state.status === 'none'", 'false'],
        ["state === undefined || state.status === 'none'", "state === undefined && state.status === 'none'"],
        ['state === undefined', 'false'],
      ),
      ...unnoticed(
        'It only saves a decision that yields nothing.',
        ["before.state.status !== 'none' && !lacks(before.state)", 'false'],
        ["before.state.status !== 'none'", "before.state.status === 'none'"],
      ),
      ...unnoticed(
        'A target that took an intent lacks nothing, and of one that did not the reason is the same at both places.',
        ['late.set(targetId, error.reason);', ';'],
        ['reason !== null && !late.has(targetId)', 'true'],
        ['reason !== null && !late.has(targetId)', 'reason !== null || !late.has(targetId)'],
        ['reason !== null', 'true'],
        ["'awaiting_approval'", '""'],
        ["['awaiting_approval']", '[]'],
      ),
      ...unnoticed(
        'Without a target that is skipped the post records nothing.',
        ['late.size === 0', 'false'],
        ['[]', '["Stryker was here"]', 'reason === undefined'],
      ),
    ],
  ),
  workflow(
    'posts/external-refs',
    ['external-refs'],
    [
      ...faultPoints('externalref:after-claim'),
      ...unnoticed('No post has that id.', ["''", '"Stryker was here!"', 'loadRef(by, ref)']),
    ],
  ),
];
