# A thin front: CMake does the work. Each target installs what it misses when run as root on Debian, and says what to
# install when not.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CC ?= cc
CTEST_ARGS ?=
SECONDS ?= $(or $(SECONDS_EACH),60)

.PHONY: all deps tests test test-all check timing-test net-test ptvm-test ptvm-long field-test field-table kernels-table fresh-test hostile mutate mutate-gate soak test-deps more-deps demo-deps sanitize demo bench fuzz install format clean

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: | deps
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX)

deps:
	@tools/deps.sh build

test-deps:
	@tools/deps.sh build test

more-deps:
	@tools/deps.sh build test more

# The program and all that tests it. CMake looks again, since what the tests need may have come after it looked first.
tests: test-deps all
	cmake -S . -B $(BUILD)
	cmake --build $(BUILD) -j $(JOBS) --target tests

SUITE = python3 tests/suite.py --build $(BUILD) --jobs $(JOBS)

# The gate: what depends on the code alone (tests/sort.cmake), once each.
test: tests sanitize
	$(SUITE) --tries 1 -L '^gate$$' $(CTEST_ARGS)

# The gate, and all that takes long, measures time or asks others; what such a test says is asked again when the machine is quiet.
test-all: more-deps tests sanitize
	$(SUITE) --table $(CTEST_ARGS)

# What one runs between edits: nothing that arms triggers, steps or takes long.
check: tests
	$(SUITE) --tries 1 -L '^check$$' $(CTEST_ARGS)

# Parts of test-all. What measures time, on this machine beside other programs that measure the same:
timing-test: more-deps tests sanitize
	$(SUITE) -L '^timing$$' $(CTEST_ARGS)

# npm's packages, a browser, a database server:
net-test: more-deps tests
	$(SUITE) -L '^net$$' $(CTEST_ARGS)

# The emulated computer with Intel PT: the recorder and the decoder on the real driver, and that computer itself.
ptvm-test: tests
	$(SUITE) -L '^ptvm$$' $(CTEST_ARGS)

# What takes too long for ptvm-test: every trigger in the PT machine, and what chance has a part in, more often.
ptvm-long: tests
	$(SUITE) -L '^machine-long$$' $(CTEST_ARGS)

# All rows of the tests of foreign programs that are made to stall: redis, PostgreSQL, nginx, haproxy, memcached, Python, Go, Java, Node.
field-test: more-deps tests
	ROWS=all $(SUITE) -L '^field$$' $(CTEST_ARGS)

# The same programs and others, each with each kind of stall, TRIALS times: writes docs/field.md. PROGRAMS=X,Y and CAUSES=Z choose.
TRIALS ?= 10
field-table: more-deps tests
	@tools/deps.sh field
	python3 tests/field/table.py --stalltrap $(BUILD)/stalltrap --build $(abspath $(BUILD)) --programs "$(PROGRAMS)" --causes "$(CAUSES)" \
	    --trials $(TRIALS) --doc docs/field.md

# Every kind of trigger and every source on the kernels of Debian 11 to 13 and of its backports, in the PT machine: writes docs/kernels.md. Half an hour.
KERNELS ?= bullseye bookworm trixie trixie-backports
kernels-table: tests
	tests/ptvm/setup.sh "" $(KERNELS)
	for suite in $(KERNELS); do tests/ptvm/test_kernels.sh $$suite $(CURDIR) $(abspath $(BUILD)) take || exit 1; done
	python3 tests/ptvm/kernels.py doc tests/ptvm/kernels.table >docs/kernels.md

# A new Debian 12 and 13 in a folder, and in it what a new user does.
fresh-test: more-deps tests
	$(SUITE) -L '^fresh$$' $(CTEST_ARGS)

# The tests of what a target, a file or a neighbour does to us, in their long forms: 500 moments of SIGKILL, 45 s of traps a source; then
# every call of every command that can fail, one a run: hours. GROUP=input, neighbours or faults: that one alone.
hostile: tests
	cmake -S . -B $(BUILD) -DST_HOSTILE_LIMIT=36000
	HOSTILE=whole MOMENTS=500 SOAK=45 FLOOD=1000 FAULTS=all $(SUITE) -L '^hostile$(if $(GROUP),-$(GROUP))$$' $(CTEST_ARGS); status=$$?; \
	    cmake -S . -B $(BUILD) -UST_HOSTILE_LIMIT && exit $$status

# Whether the tests find faults: one line at a time is changed in a copy of the tree. ONLY=TEXT chooses among tests/mutate/faults.txt.
mutate: more-deps tests
	python3 tests/mutate/run.py --build $(BUILD) --only "$(ONLY)"

# Whether the gate alone finds those that are marked for it, two a room, every one.
mutate-gate: test-deps tests
	python3 tests/mutate/run.py --build $(BUILD) --only "$(ONLY)" --gate

# Whether arm grows: an hour of traps with each source.
soak: tests
	SOAK=3600 BUILD=$(abspath $(BUILD)) STALLTRAP=$(abspath $(BUILD))/stalltrap SOURCE=$(CURDIR) bash tests/hostile/test_soak.sh

# The unit and golden tests once more with AddressSanitizer and UndefinedBehaviorSanitizer, and the fuzz targets, built by clang.
sanitize: $(BUILD)/sanitize/build.ninja
	cmake --build $(BUILD)/sanitize -j $(JOBS) --target all tests

$(BUILD)/sanitize/build.ninja: | test-deps
	cmake -S . -B $(BUILD)/sanitize -G Ninja -DST_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++

demo-deps:
	@tools/deps.sh build demo

demo: demo-deps all
	cmake --build $(BUILD) -j $(JOBS) --target workload_forwarder
	@BUILD=$(BUILD) tests/demo.sh

# ONLY="FIGURE..." measures these alone.
bench: more-deps tests
	@BUILD=$(BUILD) tests/bench/run.sh $(ONLY)

# SECONDS=60 a target; ONLY="TARGET..." runs these alone. tests/fuzz/parsers.table lists what they read.
fuzz: $(BUILD)/sanitize/build.ninja
	cmake --build $(BUILD)/sanitize -j $(JOBS) --target fuzzers
	@BUILD=$(BUILD) SECONDS_EACH=$(SECONDS) tests/fuzz/run.sh $(ONLY)

install: all
	cmake --install $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf $(BUILD)
