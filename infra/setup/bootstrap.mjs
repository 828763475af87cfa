/**
 * `node infra/setup/bootstrap.mjs [--without-dev] <script> [args…]`: every npm script runs through it. Installs what is
 * missing or out of date, then runs the script on the Node of package.json. `--without-dev`: the script needs no package
 * of the tests. Plain JavaScript without dependencies: it runs on any Node 18+, in a clone without node_modules.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const modules = path.join(root, 'node_modules');
const stamp = path.join(modules, '.postline-lock');
const WANTED = 24;

/** What the stamp of an install without the packages of the tests ends with. */
const PARTIAL = ' without-dev';

const isPartial = process.argv[2] === '--without-dev';
const [script, ...args] = process.argv.slice(isPartial ? 3 : 2);
if (script === undefined) stopWith('usage: node infra/setup/bootstrap.mjs [--without-dev] <script> [args…]', 64);
install();
if (script === '--install') process.exit(0);
run(node(), script, args);

/**
 * Installs, unless that has completed for this exact package-lock.json and platform. `npm ci` removes node_modules first:
 * beside what an earlier start installed for running, the rest is added without it, since a service may run from there.
 */
function install() {
  const lock = readFileSync(path.join(root, 'package-lock.json'));
  const current = createHash('sha256').update(lock).update(`${process.platform}-${process.arch}`).digest('hex');
  const former = existsSync(stamp) ? readFileSync(stamp, 'utf8') : null;
  if (former === current || (isPartial && former === current + PARTIAL)) return;
  // A new lock file takes nothing away from a machine on which the tests run.
  const omits = isPartial && (former === null || former.endsWith(PARTIAL));
  const adds = former === current + PARTIAL;
  const command = adds ? ['install', '--no-save'] : omits ? ['ci', '--omit=dev'] : ['ci'];
  process.stderr.write(
    adds
      ? 'Installing what the tests need beside what runs (npm install)…\n'
      : `Installing dependencies (npm ${command.join(' ')}; the first time about a minute, Node 24 and Postgres included)…\n`,
  );
  // Removed before and written after: an interrupted install is repeated.
  rmSync(stamp, { force: true });
  const started = Date.now();
  const windows = process.platform === 'win32';
  const result = spawnSync(windows ? 'npm.cmd' : 'npm', [...command, '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: root,
    shell: windows,
    // Standard output belongs to the script; the variables that npm set for our script are not for another npm.
    stdio: ['ignore', 2, 2],
    env: { ...withoutNpm(process.env), npm_config_progress: 'true' },
  });
  if (result.error?.code === 'ENOENT')
    stopWith('npm was not found: install Node 18 or newer with npm, then try again.');
  if (result.status !== 0) {
    stopWith(
      `npm ${command[0]} failed (its output is above).\n` +
        'Without a network, fill the npm cache once where there is one, or copy node_modules from a machine of this kind.\n' +
        'Behind a proxy or mirror, set npm_config_registry (and npm_config_proxy).',
    );
  }
  writeFileSync(stamp, omits ? current + PARTIAL : current);
  process.stderr.write(`Dependencies installed in ${((Date.now() - started) / 1000).toFixed(0)} s.\n`);
}

/**
 * The package's own Node: its binary, else its installer (npm may be set not to run it), else the present one if new
 * enough.
 */
function node() {
  const file = path.join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (works(file)) return file;
  const installer = path.join(modules, 'node', 'installArchSpecificPackage.js');
  if (existsSync(installer)) {
    process.stderr.write(`Fetching Node ${WANTED} (npm did not run the package's install script)…\n`);
    spawnSync(process.execPath, [installer], {
      cwd: path.dirname(installer),
      stdio: ['ignore', 2, 2],
      env: withoutNpm(process.env),
    });
    if (works(file)) return file;
  }
  if (major(process.versions.node) >= WANTED) return process.execPath;
  return stopWith(
    `Node ${WANTED} is needed; this is ${process.versions.node}, and the package 'node' could not bring one.\n` +
      `Run 'npm rebuild node', or install Node ${WANTED} yourself, then try again.`,
  );
}

function works(file) {
  if (!existsSync(file)) return false;
  const { status, stdout } = spawnSync(file, ['--version'], { encoding: 'utf8' });
  return status === 0 && major(stdout.replace('v', '')) >= WANTED;
}

function major(version) {
  return Number.parseInt(version, 10);
}

/**
 * Runs the script, forwards signals and ends as the script ends. From a terminal one Ctrl-C reaches the script more
 * than once (the whole foreground group gets it, and npm and this process forward it): the script counts those within a
 * second as one.
 */
function run(program, file, rest) {
  const bin = path.join(modules, '.bin');
  const search = [path.dirname(program), bin, process.env.PATH].join(path.delimiter);
  const child = spawn(program, [path.resolve(root, file), ...rest], {
    cwd: root,
    // The channel closes when this process ends, also by kill -9: the script then drains, or it would run on without a
    // parent to stop it.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // The second start strips and compiles nothing again.
    env: { NODE_COMPILE_CACHE: path.join(modules, '.cache', 'node'), ...process.env, PATH: search },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  whenNpmEnds(() => child.kill('SIGTERM'));
  child.on('error', (error) => stopWith(`${program} could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name);
    process.kill(process.pid, signal);
    // A signal that is ignored here leaves this process alive.
    process.exit(1);
  });
}

/**
 * npm forwards signals, but cannot report that it was killed, and a shell between npm and this process may forward
 * neither. Without npm nothing is watched: an operator may start it from a shell that ends first.
 */
function whenNpmEnds(tell) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const above = parentOfShell(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && (above === null || isAlive(above))) return;
    clearInterval(timer);
    tell();
  }, 500).unref();
}

/** Null where the process is not a shell, or its parent cannot be found. */
function parentOfShell(pid) {
  const { stdout } = spawnSync('ps', ['-o', 'ppid=,comm=', '-p', String(pid)], { encoding: 'utf8' });
  const [, parent, name] = /^\s*(\d+)\s+(.*?)\s*$/.exec(stdout ?? '') ?? processStat(pid);
  return /^(?:.*\/)?-?(?:sh|dash|ash|bash|ksh|zsh|busybox)$/.test(name ?? '') ? Number(parent) : null;
}

/** Replaces `ps`, which a slim Linux lacks. @returns its second member is the parent, its third the name */
function processStat(pid) {
  const file = `/proc/${pid}/stat`;
  const [, name, parent] = (existsSync(file) && /^\d+ \((.*)\) \S (\d+)/s.exec(readFileSync(file, 'utf8'))) || [];
  return [null, parent, name];
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** npm hands its settings down as variables; an npm called from within a script must not take them for its own. */
function withoutNpm(env) {
  const kept = { ...env };
  for (const name of [
    'npm_command',
    'npm_lifecycle_event',
    'npm_lifecycle_script',
    'npm_config_argv',
    'npm_config_global',
  ]) {
    delete kept[name];
  }
  return kept;
}

function stopWith(message, code = 1) {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}
