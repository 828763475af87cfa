// Verifies an export of a workspace's events without a database, a network or a package: node verify-export.mjs <folder>
// [--key <verifier>] [--checkpoint <file>] [--expired <kinds>]; or the receipt of an erasure: node verify-export.mjs
// --receipt <file> --key <verifier>. Exit code: 0 whole, 1 something is wrong, 2 not understood.
//
// An export is a folder:
//   events.ndjson    one event a line, in the order of the feed
//   leaves.txt       the leaf of each event, base64 of SHA-256, one a line
//   checkpoint.txt   what the installation signed: how many events, and the root of the tree over their leaves
//   keys.json        public keys that sign checkpoints; take them from the installation itself, and give them by --key
//   manifest.json    what was exported, and when
//   moves.json       of a workspace that came from another installation: the checkpoint with which this one took it over, and
//                    which keys had signed before
// An export that another installation imports has further files, which its manifest names with their hashes.
//
// A leaf is SHA-256 of a zero byte and of id, stream, revision, type, data and metadata, each behind its length in 8 bytes.
// A node is SHA-256 of a one byte and of its two children (RFC 9162, 2.1). Nobody can change an event and keep the root, and
// nobody without the private key can sign another root.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import path from 'node:path';

const sha = (...parts) => parts.reduce((made, part) => made.update(part), createHash('sha256')).digest();
const node = (left, right) => sha(Buffer.of(1), left, right);

const lengthOf = (bytes) => {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bytes.length));
  return length;
};

const leafOf = ({ id, stream, revision, type, data, metadata, encoding }) => {
  const texts = [id, stream, String(revision), type].map((text) => Buffer.from(text, 'utf8'));
  const parts = [...texts, Buffer.from(data, encoding), Buffer.from(metadata, encoding)];
  return sha(Buffer.of(0), ...parts.flatMap((part) => [lengthOf(part), part]));
};

/** The root of the first `size` leaves. */
const rootOf = (leaves, size) => {
  const whole = [];
  for (let index = 0; index < size; index += 1) {
    let right = leaves[index];
    for (let rest = index; rest % 2 === 1; rest = (rest - 1) / 2) right = node(whole.pop(), right);
    whole.push(right);
  }
  return whole.length === 0 ? sha() : whole.reduceRight((right, left) => node(left, right));
};

/** Lines of a file, which may be larger than the memory. */
function* linesOf(file) {
  const handle = openSync(file);
  const chunk = Buffer.alloc(1 << 20);
  let rest = Buffer.alloc(0);
  try {
    for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk)) {
      rest = Buffer.concat([rest, chunk.subarray(0, read)]);
      let begin = 0;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, begin)) {
        yield rest.toString('utf8', begin, end);
        begin = end + 1;
      }
      rest = Buffer.from(rest.subarray(begin));
    }
    if (rest.length > 0) yield rest.toString('utf8');
  } finally {
    closeSync(handle);
  }
}

/** A note is a text, an empty line, and a line with the name of the signer and base64 of the key's id and the signature. */
const readNote = (text) => {
  const [body = '', signature = ''] = text.split('\n\n');
  const [log = '', size = '', root = '', ...more] = body.split('\n');
  const numberIn = (word) => Number(more.find((line) => line.startsWith(`${word} `))?.split(' ')[1] ?? 0);
  const bytes = Buffer.from(signature.trim().split(' ')[2] ?? '', 'base64');
  return {
    text: `${body}\n`,
    log,
    size: Number(size),
    root,
    epoch: numberIn('epoch'),
    // The last event that the restore kept which began the epoch.
    kept: numberIn('kept'),
    keyId: bytes.subarray(0, 4).toString('hex'),
    signature: bytes.subarray(4),
  };
};

const verifierForm = /^[^+]+\+([0-9a-f]{8})\+(.+)$/;

const isSignedBy = (note, verifier) => {
  const [, id, key] = verifierForm.exec(verifier) ?? [];
  if (id !== note.keyId) return false;
  // What stands before the 32 bytes of an Ed25519 key in its standard form.
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(key, 'base64').subarray(1)]);
  return verify(
    null,
    Buffer.from(note.text),
    createPublicKey({ key: der, format: 'der', type: 'spki' }),
    note.signature,
  );
};

/** Whether one of the keys signed it, or one that a key vouches for: the installation that the workspace was in before. */
const isVouchedFor = (note, keys, moves) => {
  const trusted = keys.map((verifier) => ({ verifier, upTo: Number.POSITIVE_INFINITY }));
  const isTrusted = (one) => trusted.some(({ verifier, upTo }) => one.size <= upTo && isSignedBy(one, verifier));
  // The newest move first: its checkpoint is signed here, and names the keys of the installation before, and so on.
  for (const statement of moves.map((move) => readNote(move.statement))) {
    if (statement.log !== note.log || !isTrusted(statement)) continue;
    for (const line of statement.text.split('\n'))
      if (line.startsWith('continues '))
        trusted.push({ verifier: line.slice('continues '.length), upTo: statement.size });
  }
  return isTrusted(note);
};

const maxFindings = 100;

/** Holds the events against the leaves that were signed: says which was changed, left out, put in or moved. */
const compareEvents = (events, leaves, kinds, say) => {
  const places = new Map(leaves.map((leaf, index) => [leaf.toString('base64'), index]));
  const missing = new Set();
  let next = 0;
  let counted = 0;
  let expired = 0;
  const read = events[Symbol.iterator]();
  const take = () => {
    const { value: line, done } = read.next();
    if (done === true) return null;
    const event = JSON.parse(line);
    if (event.expired === true) return { event, hash: null };
    return { event, hash: leafOf(event).toString('base64') };
  };
  for (let [one, ahead] = [take(), take()]; one !== null; [one, ahead] = [ahead, take()]) {
    counted += 1;
    const { event, hash } = one;
    const wanted = leaves[next]?.toString('base64');
    const named = `${event.type} ${event.id} of ${event.stream}`;
    if (hash === null) {
      if (kinds.has(String(event.stream).split('-')[0])) expired += 1;
      else say(`event ${next + 1} is not in the export, only its leaf: ${named} is said to have expired`);
      if (event.sequence !== next + 1)
        say(`event ${event.sequence} is said to have expired, where event ${next + 1} belongs`);
      next += 1;
    } else if (hash === wanted) {
      if (event.sequence !== next + 1) say(`event ${next + 1} (${named}) carries the number ${event.sequence}`);
      next += 1;
    } else if (places.get(hash) === undefined) {
      const isPutIn = ahead !== null && ahead.hash === wanted;
      if (isPutIn || wanted === undefined) say(`an event that was never signed stands behind event ${next}: ${named}`);
      else {
        say(`event ${next + 1} was changed: ${named}`);
        next += 1;
      }
    } else if (places.get(hash) >= next) {
      for (let index = next; index < places.get(hash); index += 1) missing.add(index);
      next = places.get(hash) + 1;
    } else {
      const from = places.get(hash);
      say(
        missing.delete(from)
          ? `event ${from + 1} was moved behind event ${next}: ${named}`
          : `event ${from + 1} stands twice: ${named}`,
      );
    }
  }
  for (let index = next; index < leaves.length; index += 1) missing.add(index);
  for (const index of [...missing].sort((a, b) => a - b)) say(`event ${index + 1} is missing`);
  return { counted, expired };
};

/**
 * @param {string} folder
 * @param {{ key?: string, checkpoint?: string, expired?: string }} [given] a public key that was not taken from the export, and the file of a
 *   checkpoint that was kept elsewhere; kinds of streams of which a rule of the store drops events, with commas: of those alone a
 *   line without its event is taken
 * @returns what was verified, and every finding; none: the export is whole
 */
export const verifyExport = (folder, { key, checkpoint, expired: kinds = '' } = {}) => {
  const findings = [];
  let more = 0;
  const say = (finding) => {
    if (findings.length < maxFindings) findings.push(finding);
    else more += 1;
  };
  const at = (name) => path.join(folder, name);
  const keys =
    key === undefined ? JSON.parse(readFileSync(at('keys.json'), 'utf8')).keys.map(({ verifier }) => verifier) : [key];
  const leaves = [...linesOf(at('leaves.txt'))]
    .filter((line) => line !== '')
    .map((line) => Buffer.from(line, 'base64'));
  const note = readNote(readFileSync(at('checkpoint.txt'), 'utf8'));
  if (!keys.some((one) => isSignedBy(note, one))) say('checkpoint.txt is not signed by the key');
  if (note.size !== leaves.length) say(`checkpoint.txt is of ${note.size} events, leaves.txt has ${leaves.length}`);
  else if (rootOf(leaves, note.size).toString('base64') !== note.root)
    say('leaves.txt does not have the root that was signed');
  if (checkpoint !== undefined) {
    const kept = readNote(readFileSync(checkpoint, 'utf8'));
    const moves = existsSync(at('moves.json')) ? JSON.parse(readFileSync(at('moves.json'), 'utf8')).moves : [];
    if (!isVouchedFor(kept, keys, moves)) say('the kept checkpoint is not signed by the key');
    if (kept.log !== note.log) say(`the kept checkpoint is of ${kept.log}, the export of ${note.log}`);
    else if (kept.epoch < note.epoch && kept.size > note.kept)
      say(
        `a restore took back the events after ${note.kept}, and began epoch ${note.epoch}: the kept checkpoint has ${kept.size} of epoch ${kept.epoch}`,
      );
    else if (kept.size > leaves.length)
      say(`the kept checkpoint has ${kept.size} events, the export ${leaves.length}: the end is missing`);
    else if (rootOf(leaves, kept.size).toString('base64') !== kept.root)
      say(`the first ${kept.size} events are not those of the kept checkpoint`);
  }
  const { counted, expired } = compareEvents(linesOf(at('events.ndjson')), leaves, new Set(kinds.split(',')), say);
  return { log: note.log, events: counted, expired, root: note.root, keyOfExport: key === undefined, findings, more };
};

/**
 * A receipt is a checkpoint of what the feed had, with lines that say what was erased and what is kept.
 * @returns whether the key signed it, and what it says
 */
export const verifyReceipt = (file, key) => {
  const note = readNote(readFileSync(file, 'utf8'));
  return { signed: isSignedBy(note, key), says: note.text.trimEnd().split('\n') };
};

const usage =
  'usage: node verify-export.mjs <folder> [--key <verifier>] [--checkpoint <file>] [--expired <kinds>]\n' +
  '       node verify-export.mjs --receipt <file> --key <verifier>';

const receiptMain = ([, file, , key]) => {
  const { signed, says } = verifyReceipt(file, key);
  for (const line of says) console.log(line);
  console.log(signed ? 'signed by the key' : 'WRONG  not signed by the key');
  return signed ? 0 : 1;
};

const main = (args) => {
  if (args.length === 4 && args[0] === '--receipt' && args[2] === '--key') return receiptMain(args);
  const [folder, ...flags] = args;
  const given = {};
  let isUnderstood = folder !== undefined && !folder.startsWith('-');
  for (let place = 0; place < flags.length; place += 2) {
    const name = flags[place].slice(2);
    if (!['key', 'checkpoint', 'expired'].includes(name) || flags[place + 1] === undefined) isUnderstood = false;
    given[name] = flags[place + 1];
  }
  if (!isUnderstood) {
    console.error(usage);
    return 2;
  }
  const { log, events, expired, root, keyOfExport, findings, more } = verifyExport(folder, given);
  console.log(`${log}: ${events} events, ${expired} of them expired, root ${root}`);
  if (keyOfExport) console.log('The key is that of the export itself: give the installation’s own by --key.');
  for (const finding of findings) console.log(`WRONG  ${finding}`);
  if (more > 0) console.log(`and ${more} more`);
  console.log(findings.length === 0 ? 'whole: nothing was changed, left out, put in or moved' : 'not whole');
  return findings.length === 0 ? 0 : 1;
};

if (process.argv[1] !== undefined && path.resolve(process.argv[1]) === import.meta.filename)
  process.exitCode = main(process.argv.slice(2));
