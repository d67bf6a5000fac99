// packages.js README PROGRAM: run by test_viewer_npm.sh in a folder with its traces and exports.
const fs = require("fs"), path = require("path"), assert = require("assert"), { execFileSync } = require("child_process");
const [readme, program] = process.argv.slice(2);
let passed = 0, failed = 0;

function check(what, test) {
    try {
        test();
        passed++;
    } catch (error) {
        failed++;
        console.log(`FAILED: ${what}: ${error.message}`);
    }
}

function readmeQueries() {
    const block = /^Questions people ask of a trace:\n\n((?:    .*\n|\n)+)/m.exec(fs.readFileSync(readme, "utf8"))[1];
    return block.replace(/^ *--.*\n/gm, "").split(/;\n/).map(q => q.replace("'pump'", "'work'").trim()).filter(q => q);
}

function speedscope() {
    const folder = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist/release");
    const schema = fs.readdirSync(folder).find(name => /schema.*\.json$/.test(name));
    const valid = new (require("ajv"))({ strict: false }).compile(JSON.parse(fs.readFileSync(path.join(folder, schema))));
    for (const name of ["known", "made", "empty"])
        check(`${name} is valid by speedscope's schema`, () => assert(valid(JSON.parse(fs.readFileSync(`${name}.speedscope`))), JSON.stringify(valid.errors)));
    const wrong = JSON.parse(fs.readFileSync("known.speedscope"));
    wrong.profiles[0].events[0].type = "X";
    check("a wrong file is not", () => assert(!valid(wrong)));
}

async function sqljs() {
    const SQL = await require("sql.js")();
    const db = new SQL.Database(fs.readFileSync("known.db"));
    const queries = readmeQueries();
    check("the README has three queries", () => assert.equal(queries.length, 3));
    for (const query of queries)
        check(query, () => {
            const ours = JSON.parse(execFileSync(program, ["query", "known.db", query, "--format", "json"]));
            const theirs = db.exec(query)[0];
            assert(ours.length > 0);
            assert.deepEqual(ours.map(Object.values), theirs.values);
            assert.deepEqual(Object.keys(ours[0]), theirs.columns);
        });
}

speedscope();
sqljs().then(() => {
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed || passed < 8 ? 1 : 0);
});
